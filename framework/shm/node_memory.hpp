#pragma once
/// Memory of the ranks of a compute node, mapped in all of them. Private to framework/shm.

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "framework/shm/shared_memory.hpp"

namespace isohalo::detail {

/// A zeroed piece of each rank, which begins on a page. Its pages are there when they are first touched (see
/// reserve.hpp). Not a window of MPI's: MPICH makes these by collectives that keep the core while they wait, 40 to
/// 70 ms of 4 ranks on 2 cores. Move-only. Each rank frees its own when it likes.
class NodeMemory {
 public:
  /// `bytes` of this rank and of each other. Collective over `node`, the ranks of a compute node; waits with
  /// back-off. Nothing, on all ranks, when the system refuses any of them.
  static std::optional<NodeMemory> make(MPI_Comm node, int spins, std::size_t bytes);

  int ranks() const { return static_cast<int>(first_.size()); }
  /// The first byte of a rank's piece, by its rank in `node`.
  std::byte* of(int rank) const { return first_[static_cast<std::size_t>(rank)]; }

 private:
  SharedMemory own_;
  std::vector<MappedMemory> others_;
  std::vector<std::byte*> first_;
};

/// The largest of the ranks' values. Collective over `node`; waits with back-off.
std::int64_t max_on_node(MPI_Comm node, int spins, std::int64_t value);

}  // namespace isohalo::detail
