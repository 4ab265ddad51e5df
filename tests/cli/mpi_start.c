/* Starts and ends MPI: what every program of as many ranks has to pay. */
#include <mpi.h>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  return MPI_Finalize();
}
