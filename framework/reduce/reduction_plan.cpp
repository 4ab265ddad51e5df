#include "framework/reduce/reduction_plan.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "framework/reduce/partial_sets.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

template <int D>
std::vector<std::int32_t> ReductionPlan<D>::leaves_of(int rank) const {
  std::vector<std::int32_t> leaves;
  for (std::size_t n = 0; n < nodes().size(); ++n)
    if (nodes()[n].rank == rank) leaves.push_back(static_cast<std::int32_t>(n));
  return leaves;
}

template <int D>
int ReductionPlan<D>::most_leaves() const {
  std::map<int, int> leaves;
  int most = 1;
  for (const FrontierNode& n : nodes())
    if (n.rank >= 0) most = std::max(most, ++leaves[n.rank]);
  return most;
}

template <int D>
std::vector<int> ReductionPlan<D>::gather_ranks() const {
  std::vector<int> ranks(nodes().size(), -1);
  std::vector<std::int32_t> todo{0};
  while (!todo.empty()) {
    const auto n = static_cast<std::size_t>(todo.back());
    todo.pop_back();
    const auto owner = tiling_.owner(tree_.tiles[n].low), far = tiling_.owner(last_of(tree_.tiles[n]));
    bool near = true;
    for (int j = 0; j < D; ++j) near = near && far[j] <= owner[j] + 1;
    if (near)
      ranks[n] = rank_of_block_[static_cast<std::size_t>(tiling_.decomposition().rank_at(owner))];
    else
      todo.insert(todo.end(), {nodes()[n].right, nodes()[n].left});
  }
  return ranks;
}

template <int D>
PlanOptions ReductionPlan<D>::plan_options(std::size_t value_bytes, const NodeLayout* layout) const {
  int ranks = 1;
  if (layout) {
    std::vector<int> members(layout->leaders.size());
    for (const int node : layout->node_of_rank) ranks = std::max(ranks, ++members[static_cast<std::size_t>(node)]);
  }
  return {.bytes = static_cast<double>(value_bytes) * ranks * most_leaves(), .for_sets = true};
}

template <int D>
ReduceProgram ReductionPlan<D>::program_after_node(int rank, const NodeLayout& layout, int root,
                                                   const Schedule& between) const {
  ReduceProgram program(1);
  if (layout.leaders.size() == 1) {
    if (root >= 0 && root != rank) return {};
    for (std::size_t n = nodes().size(); n-- > 0;)
      if (nodes()[n].left >= 0) program[0].combine.push_back(static_cast<std::int32_t>(n));
    return program;
  }
  if (!layout.leads()) return {};
  const auto node_of = [&](int r) { return r < 0 ? -1 : layout.node_of_rank[static_cast<std::size_t>(r)]; };
  std::vector<int> holders;
  for (const FrontierNode& n : nodes()) holders.push_back(node_of(n.rank));
  append_partial_sets(program, nodes(), holders, between, node_of(rank), node_of(root));
  for (ProgramStage& stage : program)
    for (auto* list : {&stage.receive, &stage.send})
      for (NodeMessage& m : *list) m.peer = layout.leaders[static_cast<std::size_t>(m.peer)];
  return program;
}

template <int D>
ReduceProgram ReductionPlan<D>::program(int rank, int ranks, const ReductionOptions& options) const {
  check(options, ranks);
  ReduceProgram program;
  if (options.method == ReductionMethod::binary_tree) {
    std::vector<std::int64_t> leaves;
    for (const Box<D>& node : tree_.tiles) leaves.push_back(node.cells());
    program = binary_tree_program(nodes(), leaves, rank, ranks);
    append_broadcast(program, nodes(), rank, ranks, options.root);
  } else if (options.method == ReductionMethod::tree) {
    std::vector<int> holders;
    if (options.resolve) {
      holders = gather_ranks();
      append_resolve(program, nodes(), holders, rank);
    } else {
      for (const FrontierNode& n : nodes()) holders.push_back(n.rank);
    }
    append_partial_sets(program, nodes(), holders, Schedule::parse(options.schedule, ranks), rank, options.root);
  }
  return program;
}

template <int D>
std::vector<Argument> ReductionPlan<D>::arguments(const ReductionOptions& options, std::size_t value_bytes) const {
  static_assert(std::has_unique_object_representations_v<FrontierNode>);
  const std::string_view tree(reinterpret_cast<const char*>(nodes().data()), nodes().size() * sizeof(FrontierNode));
  return {{"tile", text_of_list(tiling_.tile())},
          {"grid, in tiles", text_of_list(tiles(0).high)},
          {"cuts (a fingerprint)", std::to_string(std::hash<std::string_view>()(tree))},
          {"bytes of a value", std::to_string(value_bytes)},
          {"method", to_text(options.method)},
          {"schedule", options.schedule},
          {"resolve", options.resolve ? "true" : "false"},
          {"on_node", options.on_node ? "true" : "false"},
          {"root", std::to_string(options.root)},
          {"planning", detail::to_text(options.planning)}};
}

#define ISOHALO_INSTANTIATE(D) template class ReductionPlan<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
