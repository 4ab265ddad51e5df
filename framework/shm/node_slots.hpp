#pragma once
/// Small shared-memory collectives of the ranks of a compute node: every rank writes into a slot of its own and all
/// read.
///
/// Source: Li, Hoefler, Snir 2013, "NUMA-aware shared-memory collective communication for MPI" (padded flags, one
/// copy); ranks are processes here and share memory.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "framework/shm/node.hpp"
#include "framework/shm/node_memory.hpp"
#include "framework/shm/sleepers.hpp"

namespace isohalo {

/// A slot of the same size for each rank of the compute node, in two copies that take turns from round to round: a
/// rank may write for the next round while others still read this one, as long as it ends a round only after all
/// others have published theirs, or after a message or flag that says so. Move-only.
class NodeSlots {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{128} << 10;  ///< of a slot

  /// Collective over `comm`; `bytes` must be the same on all ranks. Null, on all ranks, when it is more than
  /// kMostBytes or the system does not give or share the memory.
  static std::unique_ptr<NodeSlots> make(const Communicator& comm, std::size_t bytes) {
    if (bytes > kMostBytes) return nullptr;
    const auto node = Node::of(comm);
    const std::size_t slot = (sizeof(Flag) + bytes + kLine - 1) / kLine * kLine;
    auto memory = detail::NodeMemory::make(node->comm(), comm.spins(), kLine + 2 * slot);
    if (comm.min(memory.has_value()) == 0) return nullptr;
    return std::unique_ptr<NodeSlots>(new NodeSlots(node, std::move(*memory), slot));
  }

  const NodeLayout& layout() const { return node_->layout(); }

  /// Begins a round. Local.
  void begin() { ++round_; }
  /// Where this rank writes in this round.
  std::byte* mine() { return slot(layout().me) + sizeof(Flag); }
  /// Lets the others see it.
  void publish() { flag(layout().me).store(round_, std::memory_order_release); }
  /// Has this member published in this round? Then its slot can be read.
  bool published(int member) const { return flag(member).load(std::memory_order_acquire) == round_; }
  const std::byte* read(int member) const { return slot(member) + sizeof(Flag); }

  /// By which ranks sleep until another has published; in the leader's first line.
  detail::Sleepers sleepers() const { return detail::Sleepers(memory_.of(0)); }

 private:
  static constexpr std::size_t kLine = 128;  ///< two cache lines: what a processor may fetch at once
  /// The flag shares the first cache line of the slot, so that a few numbers arrive with it. It holds the round.
  using Flag = std::atomic<std::uint64_t>;
  static_assert(Flag::is_always_lock_free && sizeof(Flag) == 8, "flags are shared by processes");

  NodeSlots(std::shared_ptr<const Node> node, detail::NodeMemory memory, std::size_t slot_bytes)
      : node_(std::move(node)), memory_(std::move(memory)), slot_bytes_(slot_bytes) {}
  std::byte* slot(int member) const { return memory_.of(member) + kLine + (round_ & 1) * slot_bytes_; }
  Flag& flag(int member) const { return *reinterpret_cast<Flag*>(slot(member)); }

  std::shared_ptr<const Node> node_;
  detail::NodeMemory memory_;
  std::size_t slot_bytes_;
  std::uint64_t round_ = 0;
};

}  // namespace isohalo
