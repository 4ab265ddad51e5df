#pragma once
/// Small shared-memory collectives of the ranks of a compute node: every rank writes into a slot of its own and all
/// read.
///
/// Source: Li, Hoefler, Snir 2013, "NUMA-aware shared-memory collective communication for MPI" (padded flags, one
/// copy); ranks are processes here and share memory.

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/shm/node_memory.hpp"

namespace isohalo {

/// Which ranks of a communicator share a compute node.
struct NodeLayout {
  std::vector<int> leaders;       ///< lowest rank of each compute node, ascending
  std::vector<int> node_of_rank;  ///< index into `leaders`
  std::vector<int> members;       ///< ranks of this compute node, ascending; the first is its leader
  int me = 0;                     ///< this rank's place in `members`

  bool leads() const { return me == 0; }
};

/// Shared memory of the ranks of a compute node, made once per communicator and cut up by those who need some.
class NodeSegment {
 public:
  /// The segment of the communicator, cached on it. Collective the first time, local afterwards;
  /// freed with the communicator. nullptr, on all ranks, when the system does not give or share the memory.
  static std::shared_ptr<NodeSegment> of(const Communicator& comm);

  explicit NodeSegment(const Communicator& comm);
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  static constexpr std::size_t kBytes = std::size_t{256} << 10;  ///< of each rank

  const NodeLayout& layout() const { return layout_; }
  /// Start of a member's memory, aligned to kLine bytes.
  std::byte* memory(int member) const { return memory_->of(member); }
  static constexpr std::size_t kLine = 128;  ///< two cache lines: what a processor may fetch at once

  bool usable() const { return memory_.has_value(); }

  /// Sleeps until a rank of the compute node calls `wake_sleepers`, for `timeout_ns` at most, unless `ready()` is
  /// true after this rank has said that it sleeps. May wake up for nothing. Local.
  template <class Ready>
  void sleep_unless(const Ready& ready, std::int64_t timeout_ns) {
    const std::uint32_t before = calls().load();
    sleepers().fetch_add(1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!ready()) sleep(before, timeout_ns);
    sleepers().fetch_sub(1);
  }
  /// To be called once what others may sleep for has been stored. A system call only when somebody sleeps. Local.
  void wake_sleepers() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // what was stored is visible before we look for sleepers
    wake_seen_sleepers();
  }
  /// The same without a fence: may miss one that is just about to sleep, who then wakes up when its time is over.
  void wake_seen_sleepers() {
    if (sleepers().load(std::memory_order_relaxed) > 0) wake();
  }

 private:
  friend class SegmentSlots;
  struct Live {
    std::size_t first, last;
  };
  std::size_t top() const;
  /// In the leader's first line: how often sleepers were called, and how many there are.
  using Word = std::atomic<std::uint32_t>;
  static_assert(Word::is_always_lock_free && sizeof(Word) == 4, "the words are shared by processes");
  Word& calls() const { return *reinterpret_cast<Word*>(memory_->of(0)); }
  Word& sleepers() const { return *reinterpret_cast<Word*>(memory_->of(0) + sizeof(Word)); }
  void sleep(std::uint32_t calls_before, std::int64_t timeout_ns);
  void wake();

  NodeLayout layout_;
  std::optional<detail::NodeMemory> memory_;
  std::vector<Live> live_;  // bytes handed out
  std::uint64_t made_ = 0;  // sets of slots made so far
};

/// A slot of the same size for each rank of the compute node, in two copies that take turns from round to round: a
/// rank may write for the next round while others still read this one, as long as it ends a round only after all
/// others have published theirs, or after a message or flag that says so.
class SegmentSlots {
 public:
  /// Collective over `comm`; `bytes` must be the same on all ranks. None, on all ranks, when there is no room.
  static std::optional<SegmentSlots> make(const Communicator& comm, std::size_t bytes);

  SegmentSlots(SegmentSlots&&) noexcept = default;
  SegmentSlots& operator=(SegmentSlots&& other) noexcept;
  ~SegmentSlots() { give_back(); }

  const NodeLayout& layout() const { return segment_->layout(); }

  /// Begins a round. Local.
  void begin() { ++round_; }
  /// Where this rank writes in this round.
  std::byte* mine() { return slot(layout().me) + sizeof(Flag); }
  /// Lets the others see it.
  void publish() { flag(layout().me).store(stamp(), std::memory_order_release); }
  /// Has this member published in this round? Then its slot can be read.
  bool published(int member) const { return flag(member).load(std::memory_order_acquire) == stamp(); }
  const std::byte* read(int member) const { return slot(member) + sizeof(Flag); }
  /// For sleeping until something is published: see NodeSegment.
  NodeSegment& segment() const { return *segment_; }

 private:
  /// The flag shares the first cache line of the slot, so that a few numbers arrive with it.
  using Flag = std::atomic<std::uint64_t>;
  static_assert(Flag::is_always_lock_free && sizeof(Flag) == 8, "flags are shared by processes");

  SegmentSlots(std::shared_ptr<NodeSegment> segment, std::size_t offset, std::size_t slot_bytes, std::uint64_t id)
      : segment_(std::move(segment)), offset_(offset), slot_bytes_(slot_bytes), id_(id) {}
  std::byte* slot(int member) const { return segment_->memory(member) + offset_ + (round_ & 1) * slot_bytes_; }
  Flag& flag(int member) const { return *reinterpret_cast<Flag*>(slot(member)); }
  /// Differs between slots that use the same memory one after the other, and between rounds.
  std::uint64_t stamp() const { return id_ << 40 | (round_ & ((std::uint64_t{1} << 40) - 1)); }
  void give_back() noexcept;

  std::shared_ptr<NodeSegment> segment_;
  std::size_t offset_ = 0, slot_bytes_ = 0;
  std::uint64_t id_ = 0, round_ = 0;
};

}  // namespace isohalo
