/* A C program of one MPI, linked with an isohalo of another: the first call ends in an error that names both. */
#include <isohalo.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  const int offset = 1, periodic = 1;
  isohalo_neighborhood neighborhood = NULL;
  MPI_Comm cart;
  int rc, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &cart);
  rc = isohalo_neighborhood_create(cart, 1, &offset, &neighborhood);
  printf("%s\n", rc == MPI_SUCCESS ? "no error" : isohalo_error_text());
  if (rc == MPI_SUCCESS) isohalo_neighborhood_free(&neighborhood);
  MPI_Comm_free(&cart);
  MPI_Finalize();
  return 0;
}
