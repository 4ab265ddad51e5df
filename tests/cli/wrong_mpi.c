/* An MPI whose MPI_Neighbor_alltoallw spoils a byte that it received. Preloaded, to see that a benchmark that uses it
 * says so instead of timing it. */
#include <mpi.h>

int MPI_Neighbor_alltoallw(const void* send, const int send_counts[], const MPI_Aint send_places[],
                           const MPI_Datatype send_types[], void* receive, const int receive_counts[],
                           const MPI_Aint receive_places[], const MPI_Datatype receive_types[], MPI_Comm comm) {
  const int result = PMPI_Neighbor_alltoallw(send, send_counts, send_places, send_types, receive, receive_counts,
                                             receive_places, receive_types, comm);
  int kind = MPI_UNDEFINED, in = 0, out = 0, weighted = 0;
  MPI_Topo_test(comm, &kind);
  if (kind == MPI_DIST_GRAPH) MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  if (in > 0) ((char*)receive)[receive_places[in - 1]] ^= 1;
  return result;
}
