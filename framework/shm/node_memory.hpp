#pragma once
/// Memory of the ranks of a compute node, mapped in all of them. Private to framework/shm.

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "framework/shm/shared_memory.hpp"

namespace isohalo::detail {

/// A zeroed piece of each rank, which begins on a page and whose pages are there: the system only promises
/// addresses, and a page that then is not there ends the process with SIGBUS. Not a window of MPI's: MPICH makes
/// these by collectives that keep the core while they wait, 40 to 70 ms of 4 ranks on 2 cores. Move-only. Each rank
/// frees its own when it likes.
class NodeMemory {
 public:
  /// `bytes` of each rank, the same on all. Collective over `node`, all of whose ranks share a compute node; waits
  /// with back-off. Nothing, on all of them, when the system refuses any.
  static std::optional<NodeMemory> make(MPI_Comm node, int spins, std::size_t bytes);

  /// The first byte of a rank's piece, by its rank in `node`.
  std::byte* of(int rank) const { return first_[static_cast<std::size_t>(rank)]; }

 private:
  SharedMemory own_;
  std::vector<MappedMemory> others_;
  std::vector<std::byte*> first_;
};

/// `memory` becomes `bytes` that others can map and whose pages are there; false when the system refuses. Local.
bool reserve_shared(std::size_t bytes, SharedMemory& memory, SharedAddress& address);

}  // namespace isohalo::detail
