#include "framework/reduce/tree.hpp"

#include <bit>
#include <limits>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

template <int D>
Split<D> split_of(const Tiling<D>& tiling, const Box<D>& node) {
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
  const Split<D> s = split_of(tiling, node);
  std::array<Box<D>, 2> halves{node, node};
  halves[0].high[s.dimension] = s.at;
  halves[1].low[s.dimension] = s.at;
  return halves;
}

/// The rank that owns all tiles of the node, or -1.
template <int D>
int single_owner(const Tiling<D>& tiling, const Box<D>& node) {
  Index<D> last;
  for (int j = 0; j < D; ++j) last[j] = node.high[j] - 1;
  const auto first_owner = tiling.owner(node.low);
  return first_owner == tiling.owner(last) ? tiling.decomposition().rank_at(first_owner) : -1;
}

}  // namespace

template <int D>
FrontierTree<D>::FrontierTree(const Tiling<D>& tiling) {
  build(tiling, tiling.all());
}

template <int D>
std::int32_t FrontierTree<D>::build(const Tiling<D>& tiling, const Box<D>& node) {
  if (nodes_.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw UsageError("the reduction tree between ranks is beyond 2^31 nodes: use larger tiles or fewer ranks");
  const auto id = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back({});
  tiles_.push_back(node);
  const int rank = single_owner(tiling, node);
  if (rank >= 0) {
    nodes_[static_cast<std::size_t>(id)].rank = rank;
    return id;
  }
  const auto halves = children(tiling, node);
  const std::int32_t left = build(tiling, halves[0]);
  const std::int32_t right = build(tiling, halves[1]);
  nodes_[static_cast<std::size_t>(id)].left = left;
  nodes_[static_cast<std::size_t>(id)].right = right;
  return id;
}

template <int D>
void append_combines(const Tiling<D>& tiling, const Box<D>& tiles_held, const Box<D>& node,
                     std::vector<Combine>& out) {
  if (node.cells() == 1) return;
  const auto halves = children(tiling, node);
  append_combines(tiling, tiles_held, halves[0], out);
  append_combines(tiling, tiles_held, halves[1], out);
  out.push_back({static_cast<std::int32_t>(linear_index(tiles_held, halves[0].low)),
                 static_cast<std::int32_t>(linear_index(tiles_held, halves[1].low))});
}

#define ISOHALO_INSTANTIATE(D)                                    \
  template Split<D> split_of<D>(const Tiling<D>&, const Box<D>&); \
  template class FrontierTree<D>;                                 \
  template void append_combines<D>(const Tiling<D>&, const Box<D>&, const Box<D>&, std::vector<Combine>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
