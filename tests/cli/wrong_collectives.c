/* An MPI one of whose blocking collectives spoils a byte of a result: the one that WRONG_COLLECTIVE names. Preloaded,
 * to see that a benchmark that uses it says so. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* A high bit of the last of `count` numbers, on one rank alone: low ones of whole numbers may be lost in a sum. */
static void spoil(const char* name, void* result, int count, MPI_Datatype type, MPI_Comm comm, int spoilt) {
  const char* wrong = getenv("WRONG_COLLECTIVE");
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Type_size(type, &size);
  if (wrong && strcmp(wrong, name) == 0 && rank == spoilt && count > 0)
    ((unsigned char*)result)[(size_t)count * (size_t)size - 1] ^= 0x40;
}

int MPI_Scatter(const void* all, int n, MPI_Datatype type, void* mine, int count, MPI_Datatype mine_type, int root,
                MPI_Comm comm) {
  const int result = PMPI_Scatter(all, n, type, mine, count, mine_type, root, comm);
  spoil("scatter", mine, count, mine_type, comm, 1);
  return result;
}

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const int result = PMPI_Bcast(data, count, type, root, comm);
  spoil("broadcast", data, count, type, comm, 1);
  return result;
}

int MPI_Reduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  const int result = PMPI_Reduce(mine, all, count, type, op, root, comm);
  spoil("reduce", all, count, type, comm, root);
  return result;
}

int MPI_Allreduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int result = PMPI_Allreduce(mine, all, count, type, op, comm);
  spoil("allreduce", all, count, type, comm, 1);
  return result;
}
