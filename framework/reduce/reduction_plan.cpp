#include "framework/reduce/reduction_plan.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "datatypes/error.hpp"
#include "framework/mpi/fingerprint.hpp"
#include "framework/reduce/partial_sets.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

template <int D>
ReductionPlan<D>::ReductionPlan(const Tiling<D>& tiling, const std::vector<int>& rank_of_block)
    : tiling_(tiling), tree_(tiling), nodes_(tree_.nodes()), rank_of_block_(rank_of_block) {
  for (FrontierNode& n : nodes_)
    if (n.rank >= 0) n.rank = rank_of_block[static_cast<std::size_t>(n.rank)];
}

template <int D>
std::vector<std::int32_t> ReductionPlan<D>::leaves_of(int rank) const {
  std::vector<std::int32_t> leaves;
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    if (nodes_[n].rank == rank) leaves.push_back(static_cast<std::int32_t>(n));
  return leaves;
}

template <int D>
std::vector<int> ReductionPlan<D>::gather_ranks() const {
  std::vector<int> ranks(nodes_.size(), -1);
  std::vector<std::int32_t> todo{0};
  while (!todo.empty()) {
    const std::int32_t n = todo.back();
    todo.pop_back();
    const Box<D>& node = tiles(n);
    const auto owner = tiling_.owner(node.low);
    Index<D> last;
    for (int j = 0; j < D; ++j) last[j] = node.high[j] - 1;
    const auto far = tiling_.owner(last);
    bool near = true;
    for (int j = 0; j < D; ++j) near = near && far[j] <= owner[j] + 1;
    const FrontierNode& f = nodes_[static_cast<std::size_t>(n)];
    if (near) {
      ranks[static_cast<std::size_t>(n)] =
          rank_of_block_[static_cast<std::size_t>(tiling_.decomposition().rank_at(owner))];
    } else {
      todo.push_back(f.right);
      todo.push_back(f.left);
    }
  }
  return ranks;
}

template <int D>
int ReductionPlan<D>::most_leaves() const {
  std::map<int, int> leaves;
  int most = 1;
  for (const FrontierNode& n : nodes_)
    if (n.rank >= 0) most = std::max(most, ++leaves[n.rank]);
  return most;
}

template <int D>
PlanOptions ReductionPlan<D>::plan_options(std::size_t value_bytes) const {
  return {.bytes = static_cast<double>(value_bytes) * most_leaves(), .for_sets = true};
}

template <int D>
PlanOptions ReductionPlan<D>::plan_options(std::size_t value_bytes, const NodeLayout& layout) const {
  std::vector<int> members(layout.leaders.size());
  for (const int node : layout.node_of_rank) ++members[static_cast<std::size_t>(node)];
  return plan_options(value_bytes * static_cast<std::size_t>(*std::max_element(members.begin(), members.end())));
}

template <int D>
ReduceProgram ReductionPlan<D>::program_after_node(int rank, const NodeLayout& layout, int root,
                                                   const Schedule& between) const {
  ReduceProgram program(1);
  if (layout.leaders.size() == 1) {
    if (root >= 0 && root != rank) return {};
    for (std::size_t n = nodes_.size(); n-- > 0;)
      if (nodes_[n].left >= 0) program[0].combine.push_back(static_cast<std::int32_t>(n));
    return program;
  }
  if (!layout.leads()) return {};
  const auto node_of = [&](int r) { return r < 0 ? -1 : layout.node_of_rank[static_cast<std::size_t>(r)]; };
  std::vector<int> holders = leaf_ranks(nodes_);
  for (int& h : holders) h = node_of(h);
  append_sets(program, holders, between, node_of(rank), node_of(root));
  for (ProgramStep& step : program)
    for (auto* list : {&step.receive, &step.send})
      for (NodeMessage& m : *list) m.peer = layout.leaders[static_cast<std::size_t>(m.peer)];
  return program;
}

template <int D>
void ReductionPlan<D>::append_sets(ReduceProgram& program, const std::vector<int>& holders,
                                   const Schedule& schedule, int rank, int root) const {
  if (root < 0)
    append_partial_sets(program, nodes_, holders, schedule, rank);
  else
    append_partial_sets_to(root, program, nodes_, holders, schedule, rank);
}

template <int D>
Schedule ReductionPlan<D>::schedule(int ranks, const ReductionOptions& options, std::size_t value_bytes) const {
  if (options.schedule != "auto") return Schedule::parse(options.schedule, ranks);
  PlanOptions plan = plan_options(value_bytes);
  plan.costs = options.planning.costs;
  return plan_by_model(ranks, plan).schedule;
}

template <int D>
void ReductionPlan<D>::check(const ReductionOptions& options, int ranks) const {
  if (options.root < -1 || options.root >= ranks)
    throw UsageError("the result of a reduction is for rank " + std::to_string(options.root) + " of " +
                     std::to_string(ranks) + ": give a rank that there is, or -1 for all");
  refuse_schedule(options);
  if (options.method != ReductionMethod::binary_tree && options.schedule != "auto")
    Schedule::parse(options.schedule, ranks);
}

template <int D>
ReduceProgram ReductionPlan<D>::program(int rank, int ranks, const ReductionOptions& options,
                                        std::size_t value_bytes) const {
  check(options, ranks);
  ReduceProgram program;
  if (options.method == ReductionMethod::binary_tree) {
    std::vector<std::int64_t> leaves;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      leaves.push_back(tree_.tiles(static_cast<std::int32_t>(n)).cells());
    program = binary_tree_program(nodes_, leaves, rank, ranks);
    append_broadcast(program, nodes_, rank, ranks, options.root);
  } else if (options.method == ReductionMethod::tree) {
    const std::vector<int> holders =
        options.resolve ? append_resolve(program, nodes_, gather_ranks(), rank) : leaf_ranks(nodes_);
    append_sets(program, holders, schedule(ranks, options, value_bytes), rank, options.root);
  }
  return program;
}

template <int D>
std::vector<Argument> ReductionPlan<D>::arguments(const ReductionOptions& options, const Index<D>& tile,
                                                  std::size_t value_bytes) const {
  Fingerprint tree;
  for (const FrontierNode& n : nodes_) tree.add(n.left).add(n.right).add(n.rank);
  std::vector<Argument> list{{"tile", text_of_list(tile)},
                             {"grid, in tiles", text_of_list(tiles(0).high)},
                             {"cuts (a fingerprint)", std::to_string(tree.value())},
                             {"bytes of a value", std::to_string(value_bytes)}};
  append_arguments(list, options);
  return list;
}

template class ReductionPlan<1>;
template class ReductionPlan<2>;
template class ReductionPlan<3>;
template class ReductionPlan<4>;

}  // namespace isohalo
