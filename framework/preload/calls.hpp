#pragma once
/// MPI's functions as libisohalo_mpi.so does them, in a program whose MPI it was compiled for. Private to
/// framework/preload.

#include <mpi.h>

/// As MPI's, of the same names. `next`: what does it when this library does not.
namespace isohalo::preload::calls {

int Barrier(decltype(PMPI_Barrier)* next, MPI_Comm comm);
int Bcast(decltype(PMPI_Bcast)* next, void* data, int count, MPI_Datatype type, int root, MPI_Comm comm);
int Bcast_c(decltype(PMPI_Bcast_c)* next, void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
int Reduce(decltype(PMPI_Reduce)* next, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
           int root, MPI_Comm comm);
int Reduce_c(decltype(PMPI_Reduce_c)* next, const void* send, void* receive, MPI_Count count, MPI_Datatype type,
             MPI_Op op, int root, MPI_Comm comm);
int Allreduce(decltype(PMPI_Allreduce)* next, const void* send, void* receive, int count, MPI_Datatype type,
              MPI_Op op, MPI_Comm comm);
int Allreduce_c(decltype(PMPI_Allreduce_c)* next, const void* send, void* receive, MPI_Count count,
                MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int Gather(decltype(PMPI_Gather)* next, const void* send, int send_count, MPI_Datatype send_type, void* receive,
           int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
int Gather_c(decltype(PMPI_Gather_c)* next, const void* send, MPI_Count send_count, MPI_Datatype send_type,
             void* receive, MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
int Allgather(decltype(PMPI_Allgather)* next, const void* send, int send_count, MPI_Datatype send_type,
              void* receive, int receive_count, MPI_Datatype receive_type, MPI_Comm comm);
int Allgather_c(decltype(PMPI_Allgather_c)* next, const void* send, MPI_Count send_count, MPI_Datatype send_type,
                void* receive, MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm);
int Scatter(decltype(PMPI_Scatter)* next, const void* send, int send_count, MPI_Datatype send_type, void* receive,
            int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
int Scatter_c(decltype(PMPI_Scatter_c)* next, const void* send, MPI_Count send_count, MPI_Datatype send_type,
              void* receive, MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);

}  // namespace isohalo::preload::calls
