#pragma once
/// Collectives of ranks that share one compute node, through memory that all of them map.
///
/// Source: Li, Hoefler, Snir 2013, "NUMA-aware shared-memory collective communication for MPI", sections 2.2 to 2.4
/// and 2.6. Ranks are processes here, so what a caller gives is copied into shared memory once and out of it once.

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/shm/combine.hpp"
#include "framework/shm/node_cost.hpp"
#include "framework/shm/node_memory.hpp"
#include "framework/shm/rank_schedule.hpp"

namespace isohalo {

struct NodeCollectivesOptions {
  int spins = 2000;                         ///< how often a flag is looked at before the core is given away
  std::optional<Hierarchy> hierarchy = {};  ///< the same on all ranks; none: by place
  std::vector<std::int64_t> place = {};     ///< of this rank (Hierarchy::place_of); empty: what hwloc says
  std::string algorithm = {};  ///< of reductions and broadcasts, see NodeAlgorithm::text; empty: the model's choice
};

/// All ranks of a communicator call the same ones in the same order, with the same roots and sizes. Memory: host.
/// Results have the same bits in every run with as many ranks and the same hierarchy, whatever is chosen. Waiting
/// ranks spin, then give the core away, and move MPI's messages on now and then. Throws MpiError when MPI refuses
/// an operation. Not thread safe.
class NodeCollectives {
 public:
  class Request;
  static constexpr std::size_t kSlotData = std::size_t{32} << 10;  ///< longer vectors are cut
  static constexpr std::size_t kSlotSizes = 4, kSlots = 368;       ///< see node_execution.cpp

  /// Collective over `comm`, all of whose ranks share a compute node; the least of their `spins` counts. Null, on
  /// all ranks, when the system gives no memory: 259 KiB of each rank; 2 MiB more, if there is so much, once 8 MiB
  /// of vectors of more than 4 KiB have come. `comm` is used for setting up and to let MPI make progress, and must
  /// live as long. Throws UsageError, on all ranks, for an algorithm that there is not; where the hierarchy lacks
  /// its level, it is done on level 0.
  static std::unique_ptr<NodeCollectives> make(MPI_Comm comm, const NodeCollectivesOptions& options);

  int ranks() const { return ranks_; }
  const Hierarchy& hierarchy() const { return hierarchy_; }

  void barrier();
  /// `bytes` at `data`, from the root to all others.
  void broadcast(std::byte* data, std::size_t bytes, int root);
  /// `bytes` of each rank to `all` of the root, in the order of ranks; `mine` may be null on the root, whose part
  /// is there already.
  void gather(const std::byte* mine, std::size_t bytes, std::byte* all, int root);
  /// The same to all ranks. `mine` may be null or the place in `all`.
  void allgather(const std::byte* mine, std::size_t bytes, std::byte* all);
  /// `bytes` from `all` of the root to each rank; `mine` may be null on the root, which keeps its part.
  void scatter(const std::byte* all, std::size_t bytes, std::byte* mine, int root);
  /// `count` elements of each rank combined in the order of CombiningTree, over the ranks' own order where the
  /// operation does not commute, to `result`, which may be `mine`.
  void allreduce(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine);
  /// The same to the root alone; elsewhere `result` is not used.
  void reduce(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine,
              int root);

  // The same, not begun. What is passed is used until it has ended.
  Request barrier_request();
  Request broadcast_request(std::byte* data, std::size_t bytes, int root);
  Request gather_request(const std::byte* mine, std::size_t bytes, std::byte* all, int root);
  Request allgather_request(const std::byte* mine, std::size_t bytes, std::byte* all);
  Request scatter_request(const std::byte* all, std::size_t bytes, std::byte* mine, int root);
  Request allreduce_request(const std::byte* mine, std::byte* result, std::size_t count,
                            const detail::Combine& combine);
  Request reduce_request(const std::byte* mine, std::byte* result, std::size_t count,
                         const detail::Combine& combine, int root);

  /// What a reduction of so many bytes, at most a slot's, does; root -1: allreduce.
  NodeAlgorithm reduction_algorithm(std::size_t bytes, int root) const;
  NodeAlgorithm broadcast_algorithm(std::size_t bytes, int root) const;
  /// Latencies and bandwidths between these ranks, measured; the same on all. Collective; takes about a
  /// millisecond.
  NodeCosts measure();
  /// What algorithms are chosen by from now on: the same on all ranks, with nothing begun. Until then, and until a
  /// number of reductions have been done after which they are measured, they are guessed.
  void set_costs(NodeCosts costs);
  const NodeCosts& costs() const { return costs_; }
  /// Any schedule, `times` times, on elements that `combine` knows or, if it only copies, on bytes. For
  /// measurements.
  void run(const NodeSchedule& schedule, int times, const std::byte* mine, std::byte* result, std::size_t count,
           const detail::Combine* combine);

 private:
  enum class Shape { reduction, inexact_reduction, ordered_reduction, broadcast, gather, scatter, meeting, given };

  /// A call, and how far this rank has come in it.
  struct Call {
    Shape shape;
    int root;
    const std::byte* mine;
    std::byte* result;
    std::size_t count, element, most;  ///< elements in all, bytes of one, elements at a time
    const detail::Combine* combine = nullptr;
    const detail::RankSchedule* schedule = nullptr;  ///< of the elements that are on their way

    std::uint64_t base = 0;  ///< the number of its first stage
    std::size_t at = 0, length = 0, stage = 0, slot_size = 0;
    int step = 0, source = 0;
    bool published = false, active = false;
  };

  NodeCollectives(MPI_Comm comm, detail::NodeMemory memory, Hierarchy hierarchy,
                  const NodeCollectivesOptions& options);
  static constexpr std::size_t kShort = 4096, kTrialAfter = std::size_t{8} << 20;  ///< bytes, see choose_slots
  static std::size_t memory_bytes();
  std::size_t slots_of(std::size_t size) const;
  bool get_many_slots();
  void choose_slots();
  const detail::RankSchedule& schedule_of(const Call& call);
  NodeSchedule make_schedule(Shape shape, int root, std::size_t bytes) const;
  NodeAlgorithm reduction_algorithm(Shape shape, std::size_t bytes, int root) const;

  Call barrier_call() const;
  Call broadcast_call(std::byte* data, std::size_t bytes, int root) const;
  Call blocks_call(Shape shape, const std::byte* mine, std::size_t bytes, std::byte* result, int root) const;
  Call reduction_call(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine,
                      int root) const;
  void reduce_now(const Call& call);
  void complete(Call call);
  void await_readers();
  bool advance_begun();
  void await_counter();

  bool advance(Call& call);
  bool meet(Call& call, const detail::RankSchedule::Step& step);
  bool perform(Call& call, const detail::RankSchedule::Step& step, bool fills);
  bool has_come(std::byte* at, std::uint64_t stage);
  void publish(const Call& call, const detail::RankSchedule::Stage& stage);
  std::byte* slot(int rank, const Call& call, std::uint64_t stage) const;

  MPI_Comm comm_;
  detail::NodeMemory memory_;
  int ranks_ = 1, me_ = 0, spins_;
  Hierarchy hierarchy_, rank_order_;
  std::optional<NodeAlgorithm> forced_;
  NodeCosts costs_;
  int reductions_ = 0;
  std::optional<detail::NodeMemory> long_memory_;  ///< of the longest slots, where they are many
  std::size_t long_slots_ = kNodeSlots;            ///< of these in use
  bool slots_chosen_ = false;
  std::size_t long_bytes_ = 0;                                    ///< of vectors that are not short
  std::vector<std::unique_ptr<detail::RankSchedule>> schedules_;  ///< by shape, root and power of two of the bytes

  std::uint64_t next_ = 1;        ///< the number of the next schedule's first stage
  std::byte* awaited_ = nullptr;  ///< the counter that was found below `awaited_stage_`
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
  std::deque<Call*> begun_;  ///< requests, in the order of their start
};

/// A collective that can be begun again and again, as MPI's persistent ones, on all ranks in the same order among
/// requests and other calls. Move-only. What goes while it is active is waited for.
class NodeCollectives::Request {
 public:
  Request(Request&&) = default;
  Request& operator=(Request&&) = delete;
  ~Request() noexcept(false);

  /// Throws UsageError if it is active. Does not wait.
  void start();
  /// Has it ended? Does what can be done now. Does not wait.
  bool test();
  void wait();

 private:
  friend class NodeCollectives;
  Request(NodeCollectives& owner, const Call& call) : owner_(owner), call_(std::make_unique<Call>(call)) {}

  NodeCollectives& owner_;
  std::unique_ptr<Call> call_;
};

}  // namespace isohalo
