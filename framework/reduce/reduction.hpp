#pragma once
/// A global reduction of the tile values of all blocks by any method. What TreeReducer and ArrayReducer are made
/// of.

#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/superaccumulator.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/reduce/allreduce.hpp"
#include "framework/reduce/on_node_stage.hpp"
#include "framework/reduce/operations.hpp"
#include "framework/reduce/program_executor.hpp"
#include "framework/reduce/reduction_plan.hpp"
#include "framework/reduce/tile_reducer.hpp"

namespace isohalo::detail {

/// Once started it is active in every wait of the process: ranks may wait for several reductions, and for halo
/// exchanges, in different orders.
template <class V, int D, class Op>
class Reduction final : private Operation {
  static_assert(std::is_default_constructible_v<V> && !std::is_same_v<V, bool>,
                "V must have a default constructor, and be no bool (std::uint8_t will do)");
  static_assert(std::is_invocable_r_v<V, const Op&, const V&, const V&>,
                "an operation is called as op(a, b), where it is const, and returns a V");

 public:
  /// As TileReducer. `has_terms`: the caller can give the bare terms (see `give_terms`). Local.
  Reduction(const Communicator& comm, const Tiling<D>& tiling, const std::optional<PerDim<int, D>>& coords,
            const std::vector<int>& rank_of_block, Op op, bool has_terms = false)
      : comm_(comm),
        op_(op),
        has_terms_(has_terms),
        first_tag_(comm.take_tags(2)),
        plan_(tiling, rank_of_block),
        tiles_(comm, tiling, coords, rank_of_block, op, first_tag_),
        nodes_(comm, op, first_tag_ + 1) {
    for (std::int32_t leaf : plan_.leaves_of(comm.rank())) {
      const Box<D>& node = plan_.tiles(leaf);
      append_combines(tiling, tiles_.tiles(), node, local_combines_);
      leaf_places_.emplace_back(leaf, linear_index(tiles_.tiles(), node.low));
    }
  }

  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  /// Changes the method. Collective; throws UsageError on all ranks for options that are wrong or differ.
  void reduce_by(const ReductionOptions& options) {
    const auto error = error_of([&] {
      refuse_in_flight();
      check(options);
    });
    if (!in_flight_) plan_agreed_ = false;  // also when this throws
    agree_same(comm_, "reduction", plan_.arguments(options, sizeof(V)), error.get());
    options_ = options;
    on_node_.reset();
    choice_ = {.schedule = options.schedule, .by = "given"};
    if (is_exact(options.method)) {
      exact_.reset();
      exact_ = std::make_unique<ScheduledAllreduce>(comm_.get(), static_cast<int>(limbs_.words().size()),
                                                    MPI_INT64_T, MPI_SUM, options.schedule, options.planning);
    } else if (options.method == ReductionMethod::binary_tree || options.schedule != "auto") {
      nodes_.compile(plan_.nodes(), plan_.program(comm_.rank(), comm_.size(), options));
    } else if (!use_shared_memory()) {
      choose(nullptr);
    }
    plan_agreed_ = true;
  }
  const ReductionOptions& options() const { return options_; }
  /// The schedule in use, what chose it and by which times; before the first reduction what the defaults would.
  ScheduleChoice choice() const {
    if (options_.method == ReductionMethod::binary_tree) return {.by = "binary tree"};
    if (!is_exact(options_.method)) return choice_;
    return exact_ ? exact_->choice() : ScheduleChoice{};
  }

  TileReducer<V, D, Op>& tiles() { return tiles_; }
  /// What becomes of the tile values before they go to other ranks, in this order. Not that of exact methods.
  std::vector<Combination>& combinations() { return local_combines_; }

  /// This rank's terms of an exact sum. Those of exact_over_terms are given before each start.
  template <class Value>
  void give_terms([[maybe_unused]] std::int64_t n, [[maybe_unused]] const Value& value) {
    if constexpr (kSum) {
      limbs_.clear();
      for (std::int64_t i = 0; i < n; ++i) limbs_.add(value(i));
    }
  }

  /// Starts the global part; the tile values are formed. Collective. The first time, all ranks agree on the plan.
  void start() {
    launch();
    if (!proceed()) activate(this);
  }

  bool test() {
    if (Operation::test()) in_flight_ = false;
    return !in_flight_;
  }

  /// Start and wait. Collective.
  V combine() {
    launch();
    return wait();
  }

  /// The result of the last one, on the ranks that get it. Throws UsageError where none was started.
  V wait() {
    if (!started_) throw UsageError("a reduction: wait() without start()");
    in_flight_ = false;
    Operation::wait(comm_.spins());
    if constexpr (kSum) {
      if (is_exact(options_.method)) return limbs_.value();
    }
    return nodes_.value(0);
  }

  /// Throws UsageError where one is in flight: from `start` until `test` is true or `wait` returns.
  void refuse_in_flight() const {
    if (in_flight_) throw UsageError("a reduction is in flight: wait() for it first");
  }

  std::int64_t frontier_size() const { return static_cast<std::int64_t>(leaf_places_.size()); }

 private:
  enum class State { gathering, exact, collecting, combining, done };
  /// Bytes that a rank reads from others at most: beyond, a schedule moves less.
  static constexpr std::size_t kMostOnNode = std::size_t{1} << 20;
  static constexpr bool kSum = std::is_same_v<V, double> && std::is_same_v<Op, Sum>;

  void pause(Backoff& backoff) override {
    if (state_ != State::collecting || any_active()) {
      backoff.pause();
    } else if (!backoff.pause_awake()) {  // who publishes last calls
      on_node_->sleep();
      move_messages(comm_.get());
    }
    if (on_node_ && ++misses_ % 64 == 0) move_messages(comm_.get());
  }

  void launch() {
    refuse_in_flight();
    if (!plan_agreed_) reduce_by(options_);
    begin_gather();
    started_ = in_flight_ = true;
  }

  void begin_gather() {
    if (options_.method == ReductionMethod::exact_over_terms) return start_exact();
    tiles_.start_gather();
    state_ = State::gathering;
  }

  bool proceed() override {
    if (state_ == State::gathering) {
      if (!tiles_.test_gather()) return false;
      begin();
    }
    if (state_ == State::exact) return exact_->test();
    if (state_ == State::collecting) {
      if (!on_node_->collects()) return on_node_->take_result(nodes_.value(0));
      if (!on_node_->collect([this](std::int32_t n) -> V& { return nodes_.value(n); })) return false;
      nodes_.start();
      state_ = State::combining;
    }
    if (state_ == State::combining) {
      if (!nodes_.test()) return false;
      if (on_node_ && on_node_->several_nodes()) on_node_->publish_result(nodes_.value(0));
      state_ = State::done;
    }
    return true;
  }

  void check(const ReductionOptions& options) const {
    if (is_exact(options.method) && !kSum)
      throw UsageError("the reduction method " + to_text(options.method) +
                       " is for sums of float64 values: use tree or binary_tree");
    if (options.method == ReductionMethod::exact_over_terms && !has_terms_)
      throw UsageError(
          "the reduction method exact_over_terms is for ArrayReducer: use tree, binary_tree or exact_over_tiles");
    isohalo::check(options, comm_.size());
  }

  /// Looks for the schedule of all ranks, or of the leaders of compute nodes. Collective unless planned by the
  /// model.
  void choose(const NodeLayout* layout) {
    ChoiceRequest request{.plan = plan_.plan_options(sizeof(V), layout), .value_bytes = sizeof(V)};
    if (layout) request.ranks = layout->leaders;
    request.program = [&](const Schedule& s) {
      if (layout) return plan_.program_after_node(comm_.rank(), *layout, options_.root, s);
      ReductionOptions given = options_;
      given.schedule = s.text();
      return plan_.program(comm_.rank(), comm_.size(), given);
    };
    if (layout && layout->leaders.size() == 1)
      choice_ = {.by = "shared memory"};
    else
      choice_ = choose_schedule(comm_, options_.planning, request, first_tag_ + 1);
    const int ranks = layout ? static_cast<int>(layout->leaders.size()) : comm_.size();
    nodes_.compile(plan_.nodes(), request.program(Schedule::parse(choice_.schedule, ranks)));
  }

  /// Moves the reduction into shared memory where ranks share a compute node and it has room. Collective.
  bool use_shared_memory() {
    const std::size_t bytes = static_cast<std::size_t>(plan_.most_leaves()) * sizeof(V);
    if (comm_.size() == 1 || !options_.on_node || options_.resolve ||
        bytes > kMostOnNode / static_cast<std::size_t>(comm_.size()))
      return false;
    const NodeLayout& layout = Node::of(comm_)->layout();
    if (layout.leaders.size() == static_cast<std::size_t>(comm_.size())) return false;
    auto in = NodeSlots::make(comm_, bytes);
    std::unique_ptr<NodeSlots> out;
    if (layout.leaders.size() > 1) out = NodeSlots::make(comm_, sizeof(V));
    if (!in || (layout.leaders.size() > 1 && !out)) return false;
    std::vector<std::vector<std::int32_t>> leaves;
    const bool reads = options_.root < 0 || options_.root == comm_.rank() || out;
    for (const int r : layout.members)
      leaves.push_back(reads || r == comm_.rank() ? plan_.leaves_of(r) : std::vector<std::int32_t>());
    choose(&layout);
    on_node_.emplace(std::move(*in), std::move(out), std::move(leaves), comm_.oversubscribed());
    return true;
  }

  void start_exact() {
    state_ = State::exact;
    limbs_.settle();
    exact_->start(limbs_.words().data());
  }

  void begin() {
    auto& values = tiles_.values();
    if (options_.method == ReductionMethod::exact_over_tiles) {
      give_terms(std::ssize(values), [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; });
      return start_exact();
    }
    for (const Combination& c : local_combines_)
      values[static_cast<std::size_t>(c.into)] =
          combined(op_, values[static_cast<std::size_t>(c.into)], values[static_cast<std::size_t>(c.from)]);
    for (const auto& [leaf, at] : leaf_places_) nodes_.value(leaf) = values[static_cast<std::size_t>(at)];
    if (on_node_) {
      state_ = State::collecting;
      on_node_->start([this](std::int32_t n) -> V& { return nodes_.value(n); });
    } else {
      state_ = State::combining;
      nodes_.start();
    }
  }

  Communicator comm_;
  Op op_;
  bool has_terms_;
  int first_tag_;
  ReductionPlan<D> plan_;
  ReductionOptions options_;
  ScheduleChoice choice_;
  TileReducer<V, D, Op> tiles_;
  TreeExecutor<V, Op> nodes_;
  Superaccumulator limbs_;                     // of the exact methods
  std::unique_ptr<ScheduledAllreduce> exact_;  // adds them; a tag of its own: sums may start in any order
  std::vector<Combination> local_combines_;
  std::vector<std::pair<std::int32_t, std::int64_t>> leaf_places_;  // leaf, place in the tile values
  std::optional<OnNodeStage<V>> on_node_;
  State state_ = State::done;
  bool plan_agreed_ = false, in_flight_ = false, started_ = false;
  int misses_ = 0;  ///< in waits
};

}  // namespace isohalo::detail
