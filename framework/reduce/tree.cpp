#include "framework/reduce/tree.hpp"

#include <bit>
#include <limits>

#include "datatypes/error.hpp"

namespace isohalo {

template <int D>
Split split_of(const Tiling<D>& tiling, const Box<D>& node) {
  const Box<D> cells = tiling.cells_of(node);
  int best = -1;
  for (int j = 0; j < D; ++j)
    if (node.extent(j) > 1 && (best < 0 || cells.extent(j) > cells.extent(best))) best = j;
  const auto below = std::bit_floor(static_cast<std::uint64_t>(node.extent(best)) - 1);
  return {best, node.low[best] + static_cast<std::int64_t>(below)};
}

namespace {

template <int D>
std::array<Box<D>, 2> children(const Tiling<D>& tiling, const Box<D>& node) {
  const Split s = split_of(tiling, node);
  std::array<Box<D>, 2> halves{node, node};
  halves[0].high[s.dimension] = s.at;
  halves[1].low[s.dimension] = s.at;
  return halves;
}

/// Appends a node and all below it; its place.
template <int D>
std::int32_t append(FrontierTree<D>& tree, const Tiling<D>& tiling, const std::vector<int>& rank_of_block,
                    const Box<D>& node) {
  if (tree.nodes.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw UsageError("the reduction tree between ranks is beyond 2^31 nodes: use larger tiles or fewer ranks");
  const std::size_t at = tree.nodes.size();
  tree.nodes.push_back({});
  tree.tiles.push_back(node);
  const auto owner = tiling.owner(node.low);
  if (owner == tiling.owner(last_of(node))) {
    tree.nodes[at].rank = rank_of_block[static_cast<std::size_t>(tiling.decomposition().rank_at(owner))];
  } else {
    const auto halves = children(tiling, node);
    const std::int32_t left = append(tree, tiling, rank_of_block, halves[0]);
    const std::int32_t right = append(tree, tiling, rank_of_block, halves[1]);
    tree.nodes[at].left = left;
    tree.nodes[at].right = right;
  }
  return static_cast<std::int32_t>(at);
}

}  // namespace

template <int D>
FrontierTree<D>::FrontierTree(const Tiling<D>& tiling, const std::vector<int>& rank_of_block) {
  append(*this, tiling, rank_of_block, tiling.all());
}

template <int D>
void append_combines(const Tiling<D>& tiling, const Box<D>& tiles_held, const Box<D>& node,
                     std::vector<Combination>& out) {
  if (node.cells() == 1) return;
  const auto halves = children(tiling, node);
  append_combines(tiling, tiles_held, halves[0], out);
  append_combines(tiling, tiles_held, halves[1], out);
  out.push_back({static_cast<std::int32_t>(linear_index(tiles_held, halves[0].low)),
                 static_cast<std::int32_t>(linear_index(tiles_held, halves[1].low))});
}

#define ISOHALO_INSTANTIATE(D)                                 \
  template Split split_of<D>(const Tiling<D>&, const Box<D>&); \
  template struct FrontierTree<D>;                             \
  template void append_combines<D>(const Tiling<D>&, const Box<D>&, const Box<D>&, std::vector<Combination>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
