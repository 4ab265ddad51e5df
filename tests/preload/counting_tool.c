/* A profiling tool as they are preloaded: counts what a program calls, does it by MPI's PMPI functions, and says on
 * rank 0 at the end what it saw: counted Barrier=N Allreduce=N Bcast=N Alltoall=N */
#include <mpi.h>
#include <stdio.h>

static long barriers, allreduces, bcasts, alltoalls;

int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}

int MPI_Allreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return PMPI_Allreduce(in, out, n, type, op, comm);
}

int MPI_Bcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  ++bcasts;
  return PMPI_Bcast(data, n, type, root, comm);
}

int MPI_Alltoall(const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype other, MPI_Comm comm) {
  ++alltoalls;
  return PMPI_Alltoall(in, n, type, out, m, other, comm);
}

int MPI_Finalize(void) {
  int rank = -1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    fprintf(stderr, "counted Barrier=%ld Allreduce=%ld Bcast=%ld Alltoall=%ld\n", barriers, allreduces, bcasts,
            alltoalls);
  return PMPI_Finalize();
}
