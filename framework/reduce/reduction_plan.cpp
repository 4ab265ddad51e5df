#include "framework/reduce/reduction_plan.hpp"

#include <string>
#include <utility>

#include "datatypes/error.hpp"

namespace isohalo {

template <int D>
ReductionPlan<D>::ReductionPlan(FrontierTree<D> tree, const std::vector<int>& rank_of_block)
    : tree_(std::move(tree)), nodes_(tree_.nodes()) {
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
ReduceProgram ReductionPlan<D>::program(int rank, int ranks, const ReductionOptions& options) const {
  if (options.root < -1 || options.root >= ranks)
    throw UsageError("the result of a reduction is for rank " + std::to_string(options.root) + " of " +
                     std::to_string(ranks) + ": give a rank that there is, or -1 for all");
  if (options.method == ReductionMethod::binary_tree) {
    if (options.schedule != "auto")
      throw UsageError("the reduction method binary_tree has no schedule, but \"" + options.schedule +
                       "\" is given: use \"auto\" or the method tree");
    std::vector<std::int64_t> leaves;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      leaves.push_back(tree_.tiles(static_cast<std::int32_t>(n)).cells());
    ReduceProgram program = binary_tree_program(nodes_, leaves, rank, ranks);
    append_broadcast(program, nodes_, rank, ranks, options.root);
    return program;
  }
  if (options.method == ReductionMethod::exact) return {};
  return dissemination_program(nodes_, rank, ranks);
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
