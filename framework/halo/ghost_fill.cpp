#include "framework/halo/ghost_fill.hpp"

#include <cstring>
#include <map>

namespace isohalo::detail {

namespace {

template <int D>
Box<D> frame_of(const Box<D>& block, const StencilShape<D>& shape, int steps, const BoundaryTopology<D>& around) {
  const auto [below, above] = shape.ghost_widths(steps, around);
  Box<D> frame = block.grown(below, above);
  for (int j = 0; j < D; ++j)
    if (!around.periodic[j]) {
      frame.low[j] = std::max(frame.low[j], around.global.low[j]);
      frame.high[j] = std::min(frame.high[j], around.global.high[j]);
    }
  return frame;
}

/// Adds the cells that `steps` steps on `block` need.
template <int D>
void add_needed(CellSet<D>& cells, const Box<D>& block, const StencilShape<D>& shape, int steps,
                const BoundaryTopology<D>& around) {
  if (shape.kind() == StencilShape<D>::Kind::custom) {
    cells.insert(block);
    cells.grow(shape.offsets(), steps, around);
  } else {
    for (const Box<D>& b : shape.needed_boxes(block, steps, around)) cells.insert(b);
  }
}

/// Adds a row of one cell to a list of rows, or makes the last row longer.
template <int D>
void append_cell(std::vector<Region<D>>& rows, const Index<D>& cell) {
  if (!rows.empty()) {
    Box<D>& last = rows.back().box;
    Index<D> next = last.low;
    next[D - 1] = last.high[D - 1];
    if (next == cell) {
      ++last.high[D - 1];
      return;
    }
  }
  Box<D> box{cell, cell};
  for (int j = 0; j < D; ++j) ++box.high[j];
  rows.push_back(Region<D>::whole(box));
}

/// memcpy of a size that the compiler knows, for the usual ones.
template <std::int64_t bytes>
void copy_cell(std::byte* to, const std::byte* from, std::int64_t n) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes > 0 ? bytes : n));
}

}  // namespace

template <int D>
bool repeats_grid(const Decomposition<D>& blocks, const StencilShape<D>& shape, int steps,
                  const BoundaryTopology<D>& around) {
  Box<D> largest;
  for (int j = 0; j < D; ++j) largest.high[j] = blocks.largest_extent(j);
  const auto [below, above] = shape.ghost_widths(steps, around);
  double cells = 1, grid = 1;
  for (int j = 0; j < D; ++j) {
    const auto n = static_cast<double>(around.global.extent(j));
    const auto frame = static_cast<double>(largest.extent(j) + below[j] + above[j]);
    cells *= around.periodic[j] ? frame : std::min(frame, n);
    grid *= n;
  }
  return cells > 8 * grid;
}

template <int D>
GhostFill<D>::GhostFill(const Decomposition<D>& blocks, const PerDim<int, D>& coords, const StencilShape<D>& shape,
                        int steps, const BoundaryTopology<D>& around)
    : global_(blocks.global()),
      frame_(frame_of(blocks.box(coords), shape, steps, around)),
      repeats_(frame_),
      sources_(static_cast<std::size_t>(global_.cells()), -1) {
  const Box<D> block = blocks.box(coords);
  add_needed(repeats_, block, shape, steps, around);
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
  const auto fill = [&](const auto copy) {
    std::byte* row = nullptr;  // of the latest ghost; the next one may lie in the same row
    Index<D> last{};
    for_each_repeat([&](const Index<D>& ghost, std::int64_t cell) {
      if (row && std::equal(ghost.begin(), ghost.end() - 1, last.begin()))
        row += (ghost[D - 1] - last[D - 1]) * step;
      else
        row = array.cell(ghost);
      last = ghost;
      copy(row, values[static_cast<std::size_t>(cell)], array.bytes);
    });
  };
  if (array.bytes == 8)
    fill(copy_cell<8>);
  else if (array.bytes == 4)
    fill(copy_cell<4>);
  else
    fill(copy_cell<0>);
}

template <int D>
HaloMessage<D> repeated_grid_message(const Decomposition<D>& blocks, const PerDim<int, D>& sender,
                                     const PerDim<int, D>& receiver, const StencilShape<D>& shape, int steps,
                                     const BoundaryTopology<D>& around) {
  CellSet<D> needed = CellSet<D>::of_torus(around);
  add_needed(needed, blocks.box(receiver), shape, steps, around);
  HaloMessage<D> message{blocks.rank_at(receiver), {}};
  for_each_cell(blocks.box(sender), [&](const Index<D>& i) {
    if (needed.holds(i)) append_cell(message.regions, i);
  });
  return message;
}

#define ISOHALO_INSTANTIATE(D)                                                                                     \
  template bool repeats_grid<D>(const Decomposition<D>&, const StencilShape<D>&, int, const BoundaryTopology<D>&); \
  template class GhostFill<D>;                                                                                     \
  template HaloMessage<D> repeated_grid_message<D>(const Decomposition<D>&, const PerDim<int, D>&,                 \
                                                   const PerDim<int, D>&, const StencilShape<D>&, int,             \
                                                   const BoundaryTopology<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
