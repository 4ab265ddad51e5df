#pragma once
/// Collectives of ranks that share one compute node, through memory that all of them map.
///
/// Source: Li, Hoefler, Snir 2013, "NUMA-aware shared-memory collective communication for MPI", sections 2.2 to 2.4
/// and 2.6. Ranks are processes here, so what a caller gives is copied into shared memory once and out of it once;
/// or once in all, if it is long, the system lets ranks read each other's memory and that turns out to be faster.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/schedule/fastest_way.hpp"
#include "framework/shm/collective.hpp"
#include "framework/shm/node_cost.hpp"
#include "framework/shm/node_memory.hpp"

namespace isohalo {

namespace detail {
class Sleepers;

/// Where something lies in the memory of a process.
struct ProcessAddress {
  std::int64_t process = 0;
  const std::byte* at = nullptr;
};
}  // namespace detail

struct NodeCollectivesOptions {
  int spins = 2000;                         ///< how often a flag is looked at before the core is given away
  std::optional<Hierarchy> hierarchy = {};  ///< the same on all ranks; none: by place
  std::vector<std::int64_t> place = {};     ///< of this rank (Hierarchy::place_of); empty: what hwloc says
  std::string algorithm = {};  ///< of reductions and broadcasts, see NodeAlgorithm::text; empty: the model's choice
};

/// All ranks of a communicator call the same ones in the same order, with the same roots and sizes. Memory: host.
/// Results have the same bits in every run with as many ranks and the same hierarchy, whatever is chosen. Ranks
/// that wait spin, then give the core away, at last sleep until they are woken up, and move MPI's messages on now
/// and then. Throws MpiError when MPI refuses an operation. Not thread safe. Programs use ClusterCollectives, which
/// has requests too.
class NodeCollectives {
 public:
  struct Call;
  static constexpr std::size_t kSlotData = std::size_t{32} << 10;  ///< longer vectors are cut
  static constexpr std::size_t kSlotSizes = 4, kSlots = 496;       ///< see node_execution.cpp
  static constexpr int kSpinsOfOwnCores = 100;  ///< who looks at a flag less often has to share a core

  /// Collective over `comm`, all of whose ranks share a compute node; the least of their `spins` counts, or 5 where
  /// they outnumber the cores that they may run on. Null, on all ranks, when the system gives no memory: 259 KiB of
  /// each rank; 2 or 6 MiB more, if there is so much, once 8 MiB of vectors of more than 4 KiB have come, and about
  /// 1 MiB of a rank's own where long reductions are copied once. `comm` is used for setting up and to let MPI make
  /// progress, and must live as long. Throws UsageError, on all ranks, for an algorithm that there is not; where
  /// the hierarchy lacks its level, it is done on level 0.
  static std::unique_ptr<NodeCollectives> make(MPI_Comm comm, const NodeCollectivesOptions& options);

  int ranks() const { return ranks_; }
  int spins() const { return spins_; }
  const Hierarchy& hierarchy() const { return hierarchy_; }

  void run(const Collective& c) { complete(call(c)); }
  /// The same as a call that is brought on bit by bit: one after the other, in the same order on all ranks.
  Call call(const Collective& c) const;
  /// Goes on as far as other ranks have come; true when the call has ended. Never waits.
  bool advance(Call& call);
  /// Waits for what kept the last `advance` from going on, or until another one was kept from going on, as other
  /// operations go on meanwhile.
  void await();
  /// From a call's begin to its end. Only these count for what is measured and tried out: so all ranks complete a
  /// call or all bring it on themselves. Long vectors may be copied once: not where other nodes are waited for in
  /// between, since nobody leaves then before all of this node have read.
  void complete(Call call, bool may_copy_once = true);

  /// Latencies and bandwidths between these ranks, measured; the same on all. Collective; takes about a
  /// millisecond.
  NodeCosts measure();
  /// What algorithms are chosen by from now on: the same on all ranks, with nothing begun. Until then, and until a
  /// number of reductions and broadcasts have been done after which they are measured, they are guessed.
  void set_costs(NodeCosts costs);
  const NodeCosts& costs() const { return costs_; }
  /// Are long vectors, but for scattered ones and such that are gathered to one rank, copied once from now on,
  /// where the system allows it, or never? Without a call that is tried out, length by length, once many have come.
  /// The same on all ranks, with nothing begun. Collective.
  void copy_once(bool once);
  /// Was it told to, and is it done as yet?
  bool copies_once() const { return ways_[0].decided() && ways_[0].way() == 1; }
  /// Any schedule, `times` times, on elements that `combine` knows or, if it only copies, on bytes. For
  /// measurements.
  void run(const NodeSchedule& schedule, int times, const std::byte* mine, std::byte* result, std::size_t count,
           const Combine* combine);

  enum class Shape { reduction, inexact_reduction, ordered_reduction, broadcast, gather, scatter, meeting, given };
  /// A call, and how far this rank has come in it.
  struct Call {
    Shape shape;
    int root;
    const std::byte* mine;
    std::byte* result;
    std::size_t count, element, most;  ///< elements in all, bytes of one, elements at a time
    const Combine* combine = nullptr;
    const detail::RankSchedule* schedule = nullptr;  ///< of the elements that are on their way

    std::uint64_t base = 0;  ///< the number of its first stage
    std::size_t at = 0, length = 0, stage = 0, slot_size = 0;
    int step = 0, source = 0;
    bool published = false;
  };

 private:
  NodeCollectives(MPI_Comm comm, detail::NodeMemory memory, Hierarchy hierarchy,
                  const NodeCollectivesOptions& options);
  /// Vectors of fewer bytes than this power of two are never copied once, those of the next so many apart.
  static constexpr std::size_t kOnceFrom = 15, kOnceLengths = 8;
  /// Bytes: of a rank's part of what is reduced at a time, and of what it reads of all of these before it combines.
  static constexpr std::size_t kOncePart = std::size_t{1} << 20, kOncePieces = std::size_t{128} << 10;
  static constexpr std::size_t kShort = 4096, kTrialAfter = std::size_t{8} << 20;  ///< bytes, see choose_slots
  static std::size_t memory_bytes();
  std::size_t slots_of(std::size_t size) const;
  bool get_many_slots();
  void choose_slots();
  bool can_copy_once();
  FastestWay* ways_of(const Call& call);
  std::size_t copied_once(const Call& call);
  std::size_t reduced_once(const Call& call);
  void gather_words(const void* mine, std::size_t bytes, void* all);
  void tell(const std::byte* at, std::vector<detail::ProcessAddress>& all);
  double largest(double mine);
  const detail::RankSchedule& schedule_of(const Call& call);
  NodeSchedule make_schedule(Shape shape, int root, std::size_t size);
  const NodeAlgorithm& chosen(Shape shape, bool rooted, std::size_t size);
  NodeAlgorithm reduction_algorithm(Shape shape, std::size_t bytes, int root) const;
  NodeAlgorithm broadcast_algorithm(std::size_t bytes) const;

  void await_readers();
  detail::Sleepers sleepers_of(int rank) const;

  bool meet(Call& call, const detail::RankSchedule::Step& step);
  bool perform(Call& call, const detail::RankSchedule::Step& step, bool fills);
  bool has_come(int rank, std::byte* at, std::uint64_t stage);
  bool is_there() const;
  void wake_others();
  void publish(const Call& call, const detail::RankSchedule::Stage& stage);
  std::byte* slot(int rank, const Call& call, std::uint64_t stage) const;

  MPI_Comm comm_;
  detail::NodeMemory memory_;
  int ranks_ = 1, me_ = 0, spins_;
  Hierarchy hierarchy_, rank_order_;
  std::optional<NodeAlgorithm> forced_;
  NodeCosts costs_;
  std::uint64_t counted_ = 0;                      ///< of the calls after which is measured
  std::optional<detail::NodeMemory> long_memory_;  ///< of the longest slots, where they are many
  std::size_t long_slots_ = kNodeSlots;            ///< of these in use
  bool slots_chosen_ = false;
  std::size_t long_bytes_ = 0;  ///< of vectors that are not short
  /// By slots, or copied once? Of gathers to all, broadcasts, reductions to all and to one, by powers of two of the
  /// bytes.
  std::vector<FastestWay> ways_ = std::vector<FastestWay>(4 * kOnceLengths, FastestWay::of(2, 0.95));
  std::vector<detail::ProcessAddress> places_;  ///< of what is copied once, by rank
  std::vector<detail::ProcessAddress> terms_;   ///< of what is reduced
  std::vector<double> numbers_;                 ///< see largest()
  std::vector<std::byte> pieces_, part_;        ///< see reduced_once()
  std::array<std::vector<Join>, 2> all_joins_;  ///< of all ranks' vectors: of `hierarchy_`, of `rank_order_`
  std::vector<std::optional<NodeAlgorithm>> chosen_;
  std::vector<std::unique_ptr<detail::RankSchedule>> schedules_;  ///< by shape, root and power of two of the bytes

  std::uint64_t next_ = 1;        ///< the number of the next schedule's first stage
  std::byte* awaited_ = nullptr;  ///< the counter that was found below `awaited_stage_`
  int awaited_rank_ = 0;          ///< whose it is
  std::uint64_t awaited_stage_ = 0;
  std::uint64_t all_ended_ = 0;       ///< the last stage that all ranks are known to have ended
  std::vector<std::uint64_t> ended_;  ///< the last stage that each is known to have ended
  struct Published {
    std::uint64_t base = 0;
    const Reader *first = nullptr, *last = nullptr;  ///< of its schedule: who may not have read it yet
  };
  bool is_read(Published& p);
  Published& published(const Call& call, std::uint64_t stage);
  std::array<Published, kSlots> published_;  ///< in each of its slots
  std::vector<const std::byte*> inputs_;
};

}  // namespace isohalo
