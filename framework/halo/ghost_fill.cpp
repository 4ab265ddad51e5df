#include "framework/halo/ghost_fill.hpp"

#include <cstring>
#include <map>

namespace isohalo::detail {

namespace {

template <int D>
Box<D> frame_of(const HaloGeometry<D>& g, const Box<D>& block) {
  const auto [below, above] = g.widths();
  return block.grown(below, above).intersect(g.around.existing());
}

/// Adds the cells that the steps on `block` need.
template <int D>
void add_needed(CellSet<D>& cells, const HaloGeometry<D>& g, const Box<D>& block) {
  if (slabs_possible(g.shape)) {
    for (const Box<D>& b : g.shape.needed_boxes(block, g.steps, g.around)) cells.insert(b);
  } else {
    cells.insert(block);
    cells.grow(g.shape.offsets(), g.steps, g.around);
  }
}

/// Adds a row of one cell to a list of rows, or makes the last row longer.
template <int D>
void append_cell(std::vector<HaloRegion<D>>& rows, const Index<D>& cell) {
  if (!rows.empty()) {
    Box<D>& last = rows.back().region.box;
    Index<D> next = last.low;
    next[D - 1] = last.high[D - 1];
    if (next == cell) {
      ++last.high[D - 1];
      return;
    }
  }
  rows.push_back({Region<D>::whole(Box<D>::of_cell(cell))});
}

}  // namespace

template <int D>
GhostFill<D>::GhostFill(const HaloGeometry<D>& geometry, const PerDim<int, D>& coords)
    : global_(geometry.blocks.global()),
      frame_(frame_of(geometry, geometry.blocks.box(coords))),
      repeats_(frame_),
      sources_(static_cast<std::size_t>(global_.cells()), -1) {
  const Box<D> block = geometry.blocks.box(coords);
  add_needed(repeats_, geometry, block);
  for_each_cell(block, [&](const Index<D>& i) {
    sources_[static_cast<std::size_t>(linear_index(global_, i))] = linear_index(frame_, i);
    repeats_.erase(i);
  });
  for_each_repeat([&](const Index<D>& ghost, std::int64_t cell) {
    std::int64_t& source = sources_[static_cast<std::size_t>(cell)];
    ++cells_;
    if (source >= 0) return;
    source = linear_index(frame_, ghost);  // the first one is received
    repeats_.erase(ghost);
    --cells_;
  });
}

template <int D>
std::vector<HaloMessage<D>> GhostFill<D>::received(const Decomposition<D>& blocks,
                                                   const PerDim<int, D>& coords) const {
  const Box<D> block = blocks.box(coords);
  std::map<int, HaloMessage<D>> messages;
  for_each_cell(global_, [&](const Index<D>& i) {
    const std::int64_t source = sources_[static_cast<std::size_t>(linear_index(global_, i))];
    if (source < 0 || block.contains(i)) return;
    PerDim<int, D> owner;
    for (int j = 0; j < D; ++j) owner[j] = blocks.owner(j, i[j]);
    const int peer = blocks.rank_at(owner);
    HaloMessage<D>& message = messages[peer];
    message.peer = peer;
    append_cell(message.regions, index_of_linear(frame_, source));
  });
  std::vector<HaloMessage<D>> list;
  for (auto& [peer, message] : messages) list.push_back(std::move(message));
  return list;
}

template <int D>
void GhostFill<D>::run(const ErasedArray<D>& array) const {
  std::vector<const std::byte*> values(sources_.size(), nullptr);
  for (std::size_t c = 0; c < values.size(); ++c)
    if (sources_[c] >= 0) values[c] = array.cell(index_of_linear(frame_, sources_[c]));
  const std::int64_t step = array.stride[D - 1] * array.pitch;
  const auto fill = [&](const auto bytes) {
    std::byte* row = nullptr;  // of the latest ghost; the next one may lie in the same row
    Index<D> last{};
    for_each_repeat([&](const Index<D>& ghost, std::int64_t cell) {
      if (row && std::equal(ghost.begin(), ghost.end() - 1, last.begin()))
        row += (ghost[D - 1] - last[D - 1]) * step;
      else
        row = array.cell(ghost);
      last = ghost;
      std::memcpy(row, values[static_cast<std::size_t>(cell)], bytes);
    });
  };
  if (array.bytes == 8)  // known to the compiler
    fill(std::integral_constant<std::size_t, 8>{});
  else if (array.bytes == 4)
    fill(std::integral_constant<std::size_t, 4>{});
  else
    fill(static_cast<std::size_t>(array.bytes));
}

template <int D>
HaloMessage<D> repeated_grid_message(const HaloGeometry<D>& geometry, const PerDim<int, D>& sender,
                                     const PerDim<int, D>& receiver) {
  CellSet<D> needed = CellSet<D>::of_torus(geometry.around);
  add_needed(needed, geometry, geometry.blocks.box(receiver));
  HaloMessage<D> message{geometry.blocks.rank_at(receiver), {}};
  for_each_cell(geometry.blocks.box(sender), [&](const Index<D>& i) {
    if (needed.holds(i)) append_cell(message.regions, i);
  });
  return message;
}

#define ISOHALO_INSTANTIATE(D)                                                                    \
  template class GhostFill<D>;                                                                    \
  template HaloMessage<D> repeated_grid_message<D>(const HaloGeometry<D>&, const PerDim<int, D>&, \
                                                   const PerDim<int, D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
