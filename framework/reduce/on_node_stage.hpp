#pragma once
/// The part of a reduction that ranks of one compute node do through shared memory.

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "framework/shm/node_slots.hpp"

namespace isohalo::detail {

/// Every rank writes the values of its leaves where the others of its compute node see them. With one compute node
/// all read all and combine; with several the leaders do, agree among each other and write the result back.
/// All members wait for all others, also those that want no result: slots are written again two reductions later.
/// Non-blocking, persistent; nothing is allocated between `start` and the end.
template <class V>
class OnNodeStage {
 public:
  /// `leaves[m]`: tree nodes that member m of the compute node contributes; of others none where they are not
  /// wanted. `crowded`: more ranks than cores.
  OnNodeStage(NodeSlots in, std::unique_ptr<NodeSlots> out, std::vector<std::vector<std::int32_t>> leaves,
              bool crowded)
      : in_(std::move(in)), out_(std::move(out)), leaves_(std::move(leaves)), crowded_(crowded) {}

  bool several_nodes() const { return out_ != nullptr; }
  /// Does this rank collect and combine?
  bool collects() const { return !several_nodes() || in_.layout().leads(); }

  /// Publishes this rank's leaves; `value(n)` is the value of tree node n.
  template <class Value>
  void start(Value&& value) {
    in_.begin();
    if (out_) out_->begin();
    next_ = 0;
    std::byte* to = in_.mine();
    for (const std::int32_t n : leaves_[static_cast<std::size_t>(in_.layout().me)]) {
      std::memcpy(to, &value(n), sizeof(V));
      to += sizeof(V);
    }
    in_.publish();
    // Of several that publish at once the last to pass the fence sees the flags of all, and calls who sleeps. Where
    // all have a core sleepers are rare: one may be missed, and the fence would cost as much as the rest.
    if (crowded_) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!collects() && all_published()) in_.sleepers().wake_seen();
  }

  /// Takes what has been published; true when the leaves of all members are at hand.
  template <class Value>
  bool collect(Value&& value) {
    for (; next_ < leaves_.size(); ++next_) {
      const int m = static_cast<int>(next_);
      if (m == in_.layout().me) continue;
      if (!in_.published(m)) return false;
      const std::byte* from = in_.read(m);
      for (const std::int32_t n : leaves_[next_]) {
        std::memcpy(&value(n), from, sizeof(V));
        from += sizeof(V);
      }
    }
    in_.sleepers().wake_seen();
    return true;
  }

  /// With several compute nodes the leader hands the result to its members, who wait for it.
  void publish_result(const V& result) {
    std::memcpy(out_->mine(), &result, sizeof(V));
    out_->publish();
    in_.sleepers().wake();  // where they sleep
  }
  bool take_result(V& result) {
    if (!out_->published(0)) return false;
    std::memcpy(&result, out_->read(0), sizeof(V));
    return true;
  }

  /// Sleeps until there is something to take, for a millisecond at most; may wake up early.
  void sleep() {
    in_.sleepers().sleep_unless([this] { return collects() ? all_published() : out_->published(0); },
                                crowded_ ? 1'000'000 : 200'000);
  }

 private:
  bool all_published() const {
    for (int m = 0; m < static_cast<int>(in_.layout().members.size()); ++m)
      if (!in_.published(m)) return false;
    return true;
  }

  NodeSlots in_;
  std::unique_ptr<NodeSlots> out_;
  std::vector<std::vector<std::int32_t>> leaves_;
  std::size_t next_ = 0;
  bool crowded_;
};

}  // namespace isohalo::detail
