#pragma once
/// Communicators that benchmarks make for themselves.

#include <mpi.h>

#include <utility>
#include <vector>

#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/iso_comm.hpp"

namespace isohalo {

/// Freed with its owner; MPI_COMM_NULL where there is none.
struct OwnedComm {
  OwnedComm() = default;
  OwnedComm(OwnedComm&& from) noexcept : comm(std::exchange(from.comm, MPI_COMM_NULL)) {}
  OwnedComm& operator=(OwnedComm&& from) noexcept {
    std::swap(comm, from.comm);
    return *this;
  }
  ~OwnedComm() {
    if (comm != MPI_COMM_NULL && mpi_is_active()) MPI_Comm_free(&comm);
  }
  MPI_Comm comm = MPI_COMM_NULL;
};

/// Of the first so many ranks; the others have none. Collective.
inline OwnedComm first_ranks(MPI_Comm user, int ranks) {
  OwnedComm part;
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  mpi_check(MPI_Comm_split(user, rank < ranks ? 0 : MPI_UNDEFINED, rank, &part.comm), "MPI_Comm_split", user);
  return part;
}

/// As cubic as there are ranks for. Collective.
inline OwnedComm cart_of(MPI_Comm user, int dimensions, bool periodic) {
  OwnedComm cart;
  int p = 1;
  std::vector<int> dims(static_cast<std::size_t>(dimensions), 0);
  const std::vector<int> wrap(dims.size(), periodic);
  MPI_Comm_size(user, &p);
  mpi_check(MPI_Dims_create(p, dimensions, dims.data()), "MPI_Dims_create");
  mpi_check(MPI_Cart_create(user, dimensions, dims.data(), wrap.data(), 0, &cart.comm), "MPI_Cart_create");
  return cart;
}

/// MPI's graph of the neighbors that are there. Collective.
inline OwnedComm adjacent_graph(MPI_Comm user, const IsomorphicNeighborhood& n) {
  OwnedComm graph;
  const auto from = n.present_sources(), to = n.present_targets();
  mpi_check(MPI_Dist_graph_create_adjacent(user, static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                           static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                           &graph.comm),
            "MPI_Dist_graph_create_adjacent");
  return graph;
}

}  // namespace isohalo
