#pragma once
/// Blocking collectives of ranks that share one compute node, through memory that all of them map.
///
/// Source: Li, Hoefler, Snir 2013, "NUMA-aware shared-memory collective communication for MPI", sections 2.2, 2.4
/// and 2.6. Ranks are processes here, so what a caller gives is copied into shared memory once and out of it once.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "framework/shm/combine.hpp"
#include "framework/shm/node_memory.hpp"

namespace isohalo {

/// All ranks of a communicator call the same ones in the same order, with the same roots and sizes. Memory: host.
/// Results have the same bits in every run with as many ranks, whatever is chosen by size. Waiting ranks spin, then
/// give the core away, and move MPI's messages on now and then. Throws MpiError when MPI refuses an operation.
class NodeCollectives {
 public:
  /// Collective over `comm`, all of whose ranks share a compute node. Null, on all ranks, when the system gives no
  /// memory. `spins`: how often a flag is looked at before the core is given away. `comm` is used only to let MPI
  /// make progress, and must live as long.
  static std::unique_ptr<NodeCollectives> make(MPI_Comm comm, int spins);

  int ranks() const { return ranks_; }

  void barrier();
  /// `bytes` at `data`, from the root to all others.
  void broadcast(std::byte* data, std::size_t bytes, int root);
  /// `bytes` of each rank to `all` of the root, in the order of ranks; `mine` may be null on the root, whose part
  /// is there already.
  void gather(const std::byte* mine, std::size_t bytes, std::byte* all, int root);
  /// The same to all ranks.
  void allgather(const std::byte* mine, std::size_t bytes, std::byte* all);
  /// `bytes` from `all` of the root to each rank; `mine` may be null on the root, which keeps its part.
  void scatter(const std::byte* all, std::size_t bytes, std::byte* mine, int root);
  /// `count` elements of each rank combined, as Combine::all does, to `result`, which may be `mine`.
  void allreduce(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine);
  /// The same to the root alone; elsewhere `result` is not used.
  void reduce(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine,
              int root);

 private:
  NodeCollectives(MPI_Comm comm, detail::NodeMemory memory, int spins);

  // A collective is a sequence of steps, the same on all ranks. In a step a rank may publish one slot of data and
  // read those of others; before it publishes in the same slot again, all have ended that step.
  std::byte* slot(int rank) const;
  std::byte* own_slot();
  void publish();
  const std::byte* read(int rank);
  void end_step();
  void wait_for_readers();
  template <class Ready>
  void wait(const Ready& ready) const;

  void allreduce_flat(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine);
  void tile_to_all(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine);

  MPI_Comm comm_;
  detail::NodeMemory memory_;
  int ranks_ = 1, me_ = 0, spins_;
  std::uint64_t step_ = 1;
  std::vector<std::uint64_t> ended_;  ///< of each rank, the last step that we know it to have ended
  std::vector<const std::byte*> vectors_;
};

}  // namespace isohalo
