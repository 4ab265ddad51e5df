#pragma once
/// The tree between ranks and the program of each rank for every method.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/mpi/agreement.hpp"
#include "framework/reduce/reduce_program.hpp"
#include "framework/reduce/reduction_options.hpp"
#include "framework/schedule/schedule.hpp"
#include "framework/shm/node.hpp"

namespace isohalo {

/// A frontier tree whose leaves carry ranks of a communicator. Knows all that the decomposition tells; compiles
/// programs for any rank. Local.
template <int D>
class ReductionPlan {
 public:
  /// `rank_of_block`: the rank of each block of the tiling's decomposition, row-major.
  ReductionPlan(const Tiling<D>& tiling, const std::vector<int>& rank_of_block)
      : tiling_(tiling), tree_(tiling, rank_of_block), rank_of_block_(rank_of_block) {}

  const std::vector<FrontierNode>& nodes() const { return tree_.nodes; }
  const Box<D>& tiles(std::int32_t node) const { return tree_.tiles[static_cast<std::size_t>(node)]; }
  /// Leaves of one rank in tree order.
  std::vector<std::int32_t> leaves_of(int rank) const;
  /// The most leaves that any rank holds.
  int most_leaves() const;

  /// What `rank` of `ranks` does; the method tree needs a schedule, not "auto". Empty for exact methods, which have
  /// no tree between ranks. Throws UsageError for options that do not fit.
  ReduceProgram program(int rank, int ranks, const ReductionOptions& options) const;

  /// What `rank` does once the leaves of all ranks of its compute node are at hand: all combinations when there is
  /// but one compute node; otherwise the schedule `between` the leaders of these, and nothing on other ranks.
  /// Nothing either where no result is wanted (`root`, as in ReductionOptions). Local.
  ReduceProgram program_after_node(int rank, const NodeLayout& layout, int root, const Schedule& between) const;

  /// The resolve stage: for each tree node that is its highest to lie within the 3^d ranks around the owner of its
  /// first tile, that owner; -1 for all others (docs/reductions.md).
  std::vector<int> gather_ranks() const;

  /// What a schedule is to be planned for: frontiers of this size, of one rank or of all of the fullest compute
  /// node.
  PlanOptions plan_options(std::size_t value_bytes, const NodeLayout* layout = nullptr) const;

  /// What ranks must have in common, for `agree_same`: the tree between them as a fingerprint.
  std::vector<Argument> arguments(const ReductionOptions& options, std::size_t value_bytes) const;

 private:
  Tiling<D> tiling_;
  FrontierTree<D> tree_;
  std::vector<int> rank_of_block_;
};

}  // namespace isohalo
