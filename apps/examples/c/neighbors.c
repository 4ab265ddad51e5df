/* Isomorphic collectives from C: every rank tells its number to its neighbors on a torus, diagonal ones included, and adds up
 * what it hears.
 *
 *   mpiexec -n 4 neighbors
 */
#include <isohalo.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int dims[2] = {0, 0}, periods[2] = {1, 1}, size, rank, mine, heard[8], sum = 0, direct = 0, i;
  MPI_Comm cart;
  isohalo_neighborhood moore;

  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
  MPI_Comm_rank(cart, &rank);

  isohalo_neighborhood_moore(cart, 1, 0, &moore); /* 8 neighbors */
  mine = rank + 1;
  isohalo_neighbor_allgather(&mine, 1, MPI_INT, heard, 1, MPI_INT, moore);
  for (i = 0; i < 8; ++i) sum += heard[i];
  isohalo_neighbor_reduce(&mine, &direct, 1, MPI_INT, MPI_SUM, moore); /* the same in one call */
  if (rank == 0) printf("rank 0 heard %d, reduced %d\n", sum, direct);

  isohalo_neighborhood_free(&moore);
  MPI_Comm_free(&cart);
  MPI_Finalize();
  return sum == direct ? 0 : 1;
}
