#include "framework/halo/halo_regions.hpp"

#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

/// A stretch of one dimension, in the receiver's unwrapped indices, that one block owns.
struct Segment {
  std::int64_t low, high;
  int owner;
  std::int64_t shift;  ///< unwrapped = owned index + shift
  std::int8_t side;    ///< -1 below the receiver's block, 0 the block itself, 1 above
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// Cuts [from, to) at block borders; periodic dimensions wrap, others end at the domain.
template <int D>
void append_segments(const Decomposition<D>& d, int j, bool periodic, std::int64_t from, std::int64_t to,
                     std::int8_t side, std::vector<Segment>& out) {
  const std::int64_t n = d.global().extent(j);
  if (!periodic) from = std::max<std::int64_t>(from, 0), to = std::min(to, n);
  while (from < to) {
    const std::int64_t shift = floor_div(from, n) * n;
    const int owner = d.owner(j, from - shift);
    const std::int64_t end = std::min(to, d.cut(j, owner + 1) + shift);
    out.push_back({from, end, owner, shift, side});
    from = end;
  }
}

template <int D>
using Segments = PerDim<std::vector<Segment>, D>;

template <int D>
Segments<D> segments_of(const Decomposition<D>& d, const PerDim<int, D>& coords, const StencilShape<D>& shape,
                        int steps, const BoundaryTopology<D>& around) {
  const auto [below, above] = shape.ghost_widths(steps, around);
  const Box<D> block = d.box(coords);
  Segments<D> segments;
  for (int j = 0; j < D; ++j) {
    append_segments(d, j, around.periodic[j], block.low[j] - below[j], block.low[j], -1, segments[j]);
    segments[j].push_back({block.low[j], block.high[j], coords[j], 0, 0});
    append_segments(d, j, around.periodic[j], block.high[j], block.high[j] + above[j], 1, segments[j]);
  }
  return segments;
}

}  // namespace

template <int D>
std::vector<HaloRegion<D>> halo_regions(const Decomposition<D>& d, const PerDim<int, D>& coords,
                                        const StencilShape<D>& shape, int steps,
                                        const BoundaryTopology<D>& around) {
  const Segments<D> segments = segments_of(d, coords, shape, steps, around);
  const Box<D> block = d.box(coords);
  const std::vector<Box<D>> needed = shape.kind() == StencilShape<D>::Kind::custom
                                         ? shape.needed_boxes(block, steps, around)
                                         : std::vector<Box<D>>{};
  std::vector<HaloRegion<D>> all;
  Box<D> choices;
  for (int j = 0; j < D; ++j) choices.high[j] = static_cast<std::int64_t>(segments[j].size());
  for_each_cell(choices, [&](const Index<D>& choice) {
    HaloRegion<D> found;
    Box<D> part;
    PerDim<std::int8_t, D> side{};
    bool inside = true;
    for (int j = 0; j < D; ++j) {
      const Segment& s = segments[j][static_cast<std::size_t>(choice[j])];
      part.low[j] = s.low, part.high[j] = s.high;
      found.owner[j] = s.owner, found.shift[j] = s.shift;
      side[j] = s.side;
      inside = inside && s.side == 0;
    }
    if (inside) return;
    for (auto& region : shape.needed_in(block, steps, part, side, needed)) {
      found.region = region;
      all.push_back(found);
    }
  });
  return all;
}

namespace {

/// The ranges of one dimension that a slab may span in the dimensions it has been through: below, beside and above
/// the block, or all at once for a shape without corners to cut.
template <int D>
std::vector<Segment> sides_of(const Segments<D>& segments, int j, const Box<D>& block, bool at_once) {
  const std::int64_t low = segments[j].front().low, high = segments[j].back().high;
  if (at_once) return {{low, high, 0, 0, 0}};
  std::vector<Segment> sides;
  if (low < block.low[j]) sides.push_back({low, block.low[j], 0, 0, -1});
  sides.push_back({block.low[j], block.high[j], 0, 0, 0});
  if (high > block.high[j]) sides.push_back({block.high[j], high, 0, 0, 1});
  return sides;
}

}  // namespace

template <int D>
std::vector<HaloRegion<D>> slab_regions(const Decomposition<D>& d, const PerDim<int, D>& coords,
                                        const StencilShape<D>& shape, int steps,
                                        const BoundaryTopology<D>& around) {
  const Segments<D> segments = segments_of(d, coords, shape, steps, around);
  const Box<D> block = d.box(coords);
  const bool box = shape.kind() == StencilShape<D>::Kind::moore;
  std::vector<HaloRegion<D>> all;
  for (int stage = 0; stage < D; ++stage) {
    Segments<D> ranges;
    Box<D> choices;
    for (int j = 0; j < D; ++j) {
      if (j < stage) ranges[j] = sides_of(segments, j, block, box);
      if (j == stage) ranges[j] = segments[j];
      if (j > stage) ranges[j] = {{block.low[j], block.high[j], 0, 0, 0}};
      choices.high[j] = static_cast<std::int64_t>(ranges[j].size());
    }
    for_each_cell(choices, [&](const Index<D>& choice) {
      HaloRegion<D> found{{}, coords, {}, stage};
      Box<D> part;
      PerDim<std::int8_t, D> side{};
      for (int j = 0; j < D; ++j) {
        const Segment& s = ranges[j][static_cast<std::size_t>(choice[j])];
        part.low[j] = s.low, part.high[j] = s.high;
        side[j] = s.side;
        if (j == stage) found.owner[j] = s.owner, found.shift[j] = s.shift;
      }
      if (side[stage] == 0) return;
      for (auto& region : shape.needed_in(block, steps, part, side, {})) {
        found.region = region;
        all.push_back(found);
      }
    });
  }
  return all;
}

template <int D>
std::vector<PerDim<int, D>> possible_receivers(const Decomposition<D>& d, const PerDim<int, D>& coords,
                                               const StencilShape<D>& shape, int steps,
                                               const BoundaryTopology<D>& around) {
  const auto [below, above] = shape.ghost_widths(steps, around);
  const Box<D> block = d.box(coords);
  PerDim<std::vector<int>, D> candidates;
  Box<D> choices;
  for (int j = 0; j < D; ++j) {
    // Whoever reads `above` cells up reads this block from below, and the other way round.
    std::vector<Segment> readers;
    append_segments(d, j, around.periodic[j], block.low[j] - above[j], block.high[j] + below[j], 0, readers);
    for (const Segment& s : readers) candidates[j].push_back(s.owner);
    std::sort(candidates[j].begin(), candidates[j].end());
    candidates[j].erase(std::unique(candidates[j].begin(), candidates[j].end()), candidates[j].end());
    choices.high[j] = static_cast<std::int64_t>(candidates[j].size());
  }
  std::vector<PerDim<int, D>> receivers;
  for_each_cell(choices, [&](const Index<D>& choice) {
    PerDim<int, D> c;
    for (int j = 0; j < D; ++j) c[j] = candidates[j][static_cast<std::size_t>(choice[j])];
    receivers.push_back(c);
  });
  return receivers;
}

template <int D>
void refuse_reach_beyond_grid(const StencilShape<D>& shape, const BoundaryTopology<D>& around) {
  for (int j = 0; j < D; ++j) {
    const std::int64_t reach = std::max(shape.reach_low()[j], shape.reach_high()[j]);
    if (!around.periodic[j] && reach > around.global.extent(j))
      throw UsageError("the stencil reaches " + std::to_string(reach) + " cells beyond a side of dimension " +
                       std::to_string(j) + ", which has only " + std::to_string(around.global.extent(j)) +
                       " cells: use more cells or a periodic dimension");
  }
}

#define ISOHALO_INSTANTIATE(D)                                                                                  \
  template std::vector<HaloRegion<D>> slab_regions<D>(const Decomposition<D>&, const PerDim<int, D>&,           \
                                                      const StencilShape<D>&, int, const BoundaryTopology<D>&); \
  template std::vector<HaloRegion<D>> halo_regions<D>(const Decomposition<D>&, const PerDim<int, D>&,           \
                                                      const StencilShape<D>&, int, const BoundaryTopology<D>&); \
  template std::vector<PerDim<int, D>> possible_receivers<D>(                                                   \
      const Decomposition<D>&, const PerDim<int, D>&, const StencilShape<D>&, int, const BoundaryTopology<D>&); \
  template void refuse_reach_beyond_grid<D>(const StencilShape<D>&, const BoundaryTopology<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
