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
        first_tag_(comm.take_tags(2)),
        plan_(tiling, rank_of_block),
        tiles_(comm, tiling, coords, rank_of_block, op, first_tag_),
        nodes_(comm, op, first_tag_ + 1),
        exact_(comm) {
    for (std::int32_t leaf : plan_.leaves_of(comm.rank())) {
      const Box<D>& node = plan_.tiles(leaf);
      append_combines(tiling_, tiles_.tiles(), node, local_combines_);
      leaf_places_.emplace_back(leaf, linear_index(tiles_.tiles(), node.low));
    }
    compile(options_);
  }

  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  /// Changes the method. Collective; throws UsageError on all ranks for options that are wrong or differ.
  void reduce_by(const ReductionOptions& options) {
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
    if (!plan_agreed_) agree_plan();
    tiles_.start_gather();
    gathering_ = true;
    test();
  }

  bool test() {
    if (gathering_) {
      if (!tiles_.test_gather()) return false;
      gathering_ = false;
      begin();
    }
    return options_.method == ReductionMethod::exact ? exact_.test() : nodes_.test();
  }

  /// The result, on the ranks that get it.
  V value() {
    if constexpr (kSum) {
      if (options_.method == ReductionMethod::exact) return exact_.value();
    }
    return nodes_.value(0);
  }

  V wait() {
    for (Backoff backoff(comm_.spins()); !test();) backoff.pause();
    return value();
  }

  std::int64_t frontier_size() const { return static_cast<std::int64_t>(leaf_places_.size()); }

 private:
  static constexpr bool kSum = std::is_same_v<V, double> && std::is_same_v<Op, Sum>;

  void compile(const ReductionOptions& options) {
    if (options.method == ReductionMethod::exact && !kSum)
      throw UsageError("the reduction method exact is for sums of float64 values: use tree or binary_tree");
    nodes_.compile(plan_.nodes(), plan_.program(comm_.rank(), comm_.size(), options, sizeof(V)));
  }

  void agree_plan() {
    agree_same(comm_, plan_.fingerprint(options_, tiling_.tile(), sizeof(V)),
               "the plan of a reduction (grid, cuts, tile, method, schedule or type of values)");
    plan_agreed_ = true;
  }

  void begin() {
    auto& values = tiles_.values();
    if constexpr (kSum) {
      if (options_.method == ReductionMethod::exact) return exact_.start(values);
    }
    for (const Combine& c : local_combines_)
      values[static_cast<std::size_t>(c.into)] =
          op_(values[static_cast<std::size_t>(c.into)], values[static_cast<std::size_t>(c.from)]);
    for (const auto& [leaf, at] : leaf_places_) nodes_.value(leaf) = values[static_cast<std::size_t>(at)];
    nodes_.start();
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
  bool gathering_ = false, plan_agreed_ = false;
};

}  // namespace isohalo::detail
