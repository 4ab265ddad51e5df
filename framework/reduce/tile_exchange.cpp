#include "framework/reduce/tile_exchange.hpp"

#include <map>

namespace isohalo {

namespace {

/// Coordinates of all blocks that have cells of the box.
template <int D>
std::vector<PerDim<int, D>> blocks_touching(const Decomposition<D>& d, const Box<D>& cells) {
  Box<D> range;
  for (int j = 0; j < D; ++j) {
    range.low[j] = d.owner(j, cells.low[j]);
    range.high[j] = d.owner(j, cells.high[j] - 1) + 1;
  }
  std::vector<PerDim<int, D>> blocks;
  for_each_cell(range, [&](const Index<D>& i) {
    PerDim<int, D> c;
    for (int j = 0; j < D; ++j) c[j] = static_cast<int>(i[j]);
    blocks.push_back(c);
  });
  return blocks;
}

/// Lays the parts of each peer back to back, peers in rank order.
template <int D>
std::int64_t lay_out(std::map<int, std::vector<TilePart<D>>>& by_peer, int self, std::vector<TilePart<D>>& parts,
                     std::vector<TileMessage>& messages) {
  std::int64_t at = 0;
  for (auto& [peer, list] : by_peer) {
    const std::int64_t start = at;
    for (auto& part : list) {
      part.offset = at;
      at += part.cells.cells();
      parts.push_back(part);
    }
    if (peer != self) messages.push_back({peer, start, at - start});
  }
  return at;
}

}  // namespace

template <int D>
TileExchange<D>::TileExchange(const Tiling<D>& tiling, const PerDim<int, D>& coords) {
  const auto& blocks = tiling.decomposition();
  const Box<D> mine = blocks.box(coords);
  const int self = blocks.rank_at(coords);
  std::map<int, std::vector<TilePart<D>>> outgoing, incoming;
  for_each_cell(tiling.touching(mine), [&](const Index<D>& t) {
    if (!tiling.is_cut(t)) return;
    const Box<D> cells = tiling.cells_of(Box<D>::of_cell(t));
    const auto owner = tiling.owner(t);
    outgoing[blocks.rank_at(owner)].push_back({t, cells.intersect(mine), 0});
    if (owner != coords) return;
    owned_cut.push_back(t);
    for (const auto& other : blocks_touching(blocks, cells))
      if (other != coords) incoming[blocks.rank_at(other)].push_back({t, cells.intersect(blocks.box(other)), 0});
  });
  outgoing_cells = lay_out(outgoing, self, local, send);
  incoming_cells = lay_out(incoming, self, arriving, receive);
}

#define ISOHALO_INSTANTIATE(D) template struct TileExchange<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
