#pragma once
/// A global reduction of the tile values of all blocks by any method. What TreeReducer and ArrayReducer are made
/// of.

#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/reduce/exact_sum.hpp"
#include "framework/reduce/node_reducer.hpp"
#include "framework/reduce/on_node_stage.hpp"
#include "framework/reduce/operations.hpp"
#include "framework/reduce/reduction_plan.hpp"
#include "framework/reduce/tile_reducer.hpp"

namespace isohalo::detail {

/// Block k belongs to rank k.
inline std::vector<int> identity_map(int ranks) {
  std::vector<int> map(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) map[static_cast<std::size_t>(r)] = r;
  return map;
}

template <class V, int D, class Op>
class Reduction {
 public:
  /// As TileReducer. Local.
  Reduction(const Communicator& comm, const Tiling<D>& tiling, const std::optional<PerDim<int, D>>& coords,
            const std::vector<int>& rank_of_block, Op op)
      : comm_(comm),
        op_(op),
        tiling_(tiling),
        first_tag_(comm.take_tags(3)),
        plan_(tiling, rank_of_block),
        tiles_(comm, tiling, coords, rank_of_block, op, first_tag_),
        nodes_(comm, op, first_tag_ + 1),
        exact_(comm) {
    for (std::int32_t leaf : plan_.leaves_of(comm.rank())) {
      const Box<D>& node = plan_.tiles(leaf);
      append_combines(tiling_, tiles_.tiles(), node, local_combines_);
      leaf_places_.emplace_back(leaf, linear_index(tiles_.tiles(), node.low));
    }
  }

  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  /// Changes the method. Collective; throws UsageError on all ranks for options that are wrong or differ.
  void reduce_by(const ReductionOptions& options) {
    plan_agreed_ = false;  // also when this throws
    agreed(comm_, [&] { compile(options); });
    options_ = options;
    agree_plan();
    if (options.method == ReductionMethod::exact) exact_.use_schedule(options.schedule);
  }
  const ReductionOptions& options() const { return options_; }

  TileReducer<V, D, Op>& tiles() { return tiles_; }
  const TileReducer<V, D, Op>& tiles() const { return tiles_; }

  /// Starts the global part; the tile values are formed. Collective. The first time, all ranks agree on the plan.
  void start() {
    if (!plan_agreed_) reduce_by(options_);
    tiles_.start_gather();
    phase_ = Phase::gathering;
    test();
  }

  bool test() {
    if (phase_ == Phase::gathering) {
      if (!tiles_.test_gather()) return false;
      begin();
    }
    if (phase_ == Phase::exact) return exact_.test();
    if (phase_ == Phase::collecting) {
      if (!on_node_->collects()) return on_node_->take_result(nodes_.value(0));
      if (!on_node_->collect([this](std::int32_t n) -> V& { return nodes_.value(n); })) return false;
      nodes_.start();
      phase_ = Phase::combining;
    }
    if (phase_ == Phase::combining) {
      if (!nodes_.test()) return false;
      if (on_node_ && on_node_->several_nodes()) on_node_->publish_result(nodes_.value(0));
      phase_ = Phase::done;
    }
    return true;
  }

  /// The result, on the ranks that get it.
  V value() {
    if constexpr (kSum) {
      if (options_.method == ReductionMethod::exact) return exact_.value();
    }
    return nodes_.value(0);
  }

  V wait() {
    int misses = 0;
    for (Backoff backoff(comm_.spins()); !test();) {
      if (options_.emulate.on())
        nap_for_emulation();
      else
        backoff.pause();
      // Flags in shared memory do not move messages on, of which a rank that we wait for may wait for one.
      if (on_node_ && ++misses % 64 == 0) poke_mpi();
    }
    return value();
  }

  std::int64_t frontier_size() const { return static_cast<std::int64_t>(leaf_places_.size()); }

 private:
  enum class Phase { gathering, exact, collecting, combining, done };
  /// Bytes that a rank reads from others at most: beyond, a schedule moves less.
  static constexpr std::size_t kMostOnNode = std::size_t{1} << 20;
  static constexpr bool kSum = std::is_same_v<V, double> && std::is_same_v<Op, Sum>;

  void compile(const ReductionOptions& options) {
    if (options.method == ReductionMethod::exact && !kSum)
      throw UsageError("the reduction method exact is for sums of float64 values: use tree or binary_tree");
    nodes_.compile(plan_.nodes(), plan_.program(comm_.rank(), comm_.size(), options, sizeof(V)), options.emulate);
  }

  /// Collective.
  void agree_plan() {
    agree_same(comm_, plan_.fingerprint(options_, tiling_.tile(), sizeof(V)),
               "the plan of a reduction (grid, cuts, tile, method, schedule or type of values)");
    plan_agreed_ = true;
    on_node_.reset();
    if (options_.method == ReductionMethod::tree && options_.schedule == "auto" && options_.on_node &&
        !options_.resolve && !options_.emulate.on() && comm_.size() > 1)
      meet_on_node();
  }

  /// Moves the reduction into shared memory where ranks share a compute node and it has room. Collective.
  void meet_on_node() {
    const std::size_t bytes = static_cast<std::size_t>(plan_.most_leaves(comm_.size())) * sizeof(V);
    if (bytes > kMostOnNode / static_cast<std::size_t>(comm_.size())) return;
    const auto arena = NodeArena::of(comm_);
    if (!arena || arena->layout().leaders.size() == static_cast<std::size_t>(comm_.size())) return;
    const NodeLayout& layout = arena->layout();
    auto in = NodeBoard::make(comm_, bytes);
    std::optional<NodeBoard> out;
    if (layout.leaders.size() > 1) out = NodeBoard::make(comm_, sizeof(V));
    if (!in || (layout.leaders.size() > 1 && !out)) return;
    std::vector<std::vector<std::int32_t>> leaves;
    for (const int r : layout.members) leaves.push_back(plan_.leaves_of(r));
    nodes_.compile(plan_.nodes(), plan_.program_after_node(comm_.rank(), layout, sizeof(V)));
    on_node_.emplace(std::move(*in), std::move(out), std::move(leaves));
  }

  void poke_mpi() {
    int there = 0;
    mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, first_tag_, comm_.get(), &there, MPI_STATUS_IGNORE), "MPI_Iprobe",
              comm_.get());
  }

  void begin() {
    auto& values = tiles_.values();
    if constexpr (kSum) {
      if (options_.method == ReductionMethod::exact) {
        phase_ = Phase::exact;
        return exact_.start(values);
      }
    }
    for (const Combine& c : local_combines_)
      values[static_cast<std::size_t>(c.into)] =
          op_(values[static_cast<std::size_t>(c.into)], values[static_cast<std::size_t>(c.from)]);
    for (const auto& [leaf, at] : leaf_places_) nodes_.value(leaf) = values[static_cast<std::size_t>(at)];
    if (on_node_) {
      phase_ = Phase::collecting;
      on_node_->start([this](std::int32_t n) -> V& { return nodes_.value(n); });
    } else {
      phase_ = Phase::combining;
      nodes_.start();
    }
  }

  Communicator comm_;
  Op op_;
  Tiling<D> tiling_;
  int first_tag_;
  ReductionPlan<D> plan_;
  ReductionOptions options_;
  TileReducer<V, D, Op> tiles_;
  NodeReducer<V, Op> nodes_;
  ExactSum exact_;
  std::vector<Combine> local_combines_;
  std::vector<std::pair<std::int32_t, std::int64_t>> leaf_places_;  // leaf, place in the tile values
  std::optional<OnNodeStage<V>> on_node_;
  Phase phase_ = Phase::done;
  bool plan_agreed_ = false;
};

}  // namespace isohalo::detail
