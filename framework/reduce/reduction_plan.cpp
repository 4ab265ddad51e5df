#include "framework/reduce/reduction_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "datatypes/error.hpp"
#include "framework/reduce/keyed_sets.hpp"
#include "framework/reduce/schedule_search.hpp"

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
int ReductionPlan<D>::most_leaves(int ranks) const {
  std::vector<int> values(static_cast<std::size_t>(ranks));
  int most = 1;
  for (const FrontierNode& n : nodes_)
    if (n.rank >= 0) most = std::max(most, ++values[static_cast<std::size_t>(n.rank)]);
  return most;
}

template <int D>
ReduceProgram ReductionPlan<D>::program_after_node(int rank, const NodeLayout& layout,
                                                   std::size_t value_bytes) const {
  ReduceProgram program(1);
  const int nodes = static_cast<int>(layout.leaders.size());
  if (nodes == 1) {
    for (std::size_t n = nodes_.size(); n-- > 0;)
      if (nodes_[n].left >= 0) program[0].combine.push_back(static_cast<std::int32_t>(n));
    return program;
  }
  if (!layout.leads()) return {};
  std::vector<int> holders = leaf_ranks(nodes_);
  for (int& h : holders)
    if (h >= 0) h = layout.node_of_rank[static_cast<std::size_t>(h)];
  append_keyed_sets(program, nodes_, holders, schedule(nodes, {}, value_bytes * layout.members.size()),
                    layout.node_of_rank[static_cast<std::size_t>(rank)]);
  for (ProgramStep& step : program)
    for (auto* list : {&step.receive, &step.send})
      for (NodeMessage& m : *list) m.peer = layout.leaders[static_cast<std::size_t>(m.peer)];
  return program;
}

template <int D>
Schedule ReductionPlan<D>::schedule(int ranks, const ReductionOptions& options, std::size_t value_bytes) const {
  if (options.schedule != "auto") return Schedule::parse(options.schedule, ranks);
  PlanOptions plan;
  plan.bytes = static_cast<double>(value_bytes) * most_leaves(ranks);
  plan.for_sets = true;
  return plan_by_model(ranks, plan).schedule;
}

template <int D>
ReduceProgram ReductionPlan<D>::program(int rank, int ranks, const ReductionOptions& options,
                                        std::size_t value_bytes) const {
  if (options.root < -1 || options.root >= ranks)
    throw UsageError("the result of a reduction is for rank " + std::to_string(options.root) + " of " +
                     std::to_string(ranks) + ": give a rank that there is, or -1 for all");
  refuse_schedule(options);
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
    append_keyed_sets(program, nodes_, holders, schedule(ranks, options, value_bytes), rank);
  }
  return program;
}

template <int D>
std::uint64_t ReductionPlan<D>::fingerprint(const ReductionOptions& options, const Index<D>& tile,
                                            std::size_t value_bytes) const {
  std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a, a word at a time
  const auto add = [&h](std::uint64_t word) { h = (h ^ word) * 0x100000001b3u, h ^= h >> 29; };
  for (const FrontierNode& n : nodes_)
    for (const std::int32_t word : {n.left, n.right, n.rank}) add(static_cast<std::uint32_t>(word));
  for (int j = 0; j < D; ++j) add(tile[j]), add(tiles(0).high[j]);
  for (const char c : to_text(options.method) + "/" + options.schedule) add(static_cast<unsigned char>(c));
  add(options.resolve), add(options.on_node), add(static_cast<std::uint32_t>(options.root)), add(value_bytes);
  return h;
}

template class ReductionPlan<1>;
template class ReductionPlan<2>;
template class ReductionPlan<3>;
template class ReductionPlan<4>;

}  // namespace isohalo
