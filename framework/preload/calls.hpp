#pragma once
/// MPI's functions as libisohalo_mpi.so does them, in a program whose MPI it was compiled for. Private to
/// framework/preload.

#include <mpi.h>

/// As MPI's, of the same names.
namespace isohalo::preload::calls {

int Barrier(MPI_Comm comm);
int Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm);
int Bcast_c(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
int Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int Reduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
             MPI_Comm comm);
int Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int Allreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
           MPI_Datatype receive_type, int root, MPI_Comm comm);
int Gather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
             MPI_Datatype receive_type, int root, MPI_Comm comm);
int Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
              MPI_Datatype receive_type, MPI_Comm comm);
int Allgather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
                MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm);
int Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm);
int Scatter_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
              MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);

}  // namespace isohalo::preload::calls
