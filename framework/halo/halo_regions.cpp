#include "framework/halo/halo_regions.hpp"

#include <algorithm>
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
template <int D>
using Segments = PerDim<std::vector<Segment>, D>;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// Cuts [from, to) at block borders; periodic dimensions wrap, others end at the domain.
template <int D>
void append_segments(const HaloGeometry<D>& g, int j, std::int64_t from, std::int64_t to, std::int8_t side,
                     std::vector<Segment>& out) {
  const std::int64_t n = g.blocks.global().extent(j);
  if (!g.around.periodic[j]) from = std::max<std::int64_t>(from, 0), to = std::min(to, n);
  while (from < to) {
    const std::int64_t shift = floor_div(from, n) * n;
    const int owner = g.blocks.owner(j, from - shift);
    const std::int64_t end = std::min(to, g.blocks.cut(j, owner + 1) + shift);
    out.push_back({from, end, owner, shift, side});
    from = end;
  }
}

template <int D>
Segments<D> segments_of(const HaloGeometry<D>& g, const PerDim<int, D>& coords) {
  const auto [below, above] = g.widths();
  const Box<D> block = g.blocks.box(coords);
  Segments<D> segments;
  for (int j = 0; j < D; ++j) {
    append_segments(g, j, block.low[j] - below[j], block.low[j], -1, segments[j]);
    segments[j].push_back({block.low[j], block.high[j], coords[j], 0, 0});
    append_segments(g, j, block.high[j], block.high[j] + above[j], 1, segments[j]);
  }
  return segments;
}

/// The ranges of one dimension that a slab may span in the dimensions it has been through: below, beside and above
/// the block, or all at once for a shape without corners to cut.
std::vector<Segment> sides_of(const std::vector<Segment>& segments, const Segment& block, bool at_once) {
  const std::int64_t low = segments.front().low, high = segments.back().high;
  if (at_once) return {{low, high, block.owner, 0, 0}};
  std::vector<Segment> sides;
  if (low < block.low) sides.push_back({low, block.low, block.owner, 0, -1});
  sides.push_back(block);
  if (high > block.high) sides.push_back({block.high, high, block.owner, 0, 1});
  return sides;
}

/// Calls f(part, sides) for each combination of one segment per dimension.
template <int D, class F>
void for_each_segment(const Segments<D>& segments, F&& f) {
  Box<D> choices;
  for (int j = 0; j < D; ++j) choices.high[j] = static_cast<std::int64_t>(segments[j].size());
  for_each_cell(choices, [&](const Index<D>& choice) {
    HaloRegion<D> part;
    PerDim<std::int8_t, D> sides;
    for (int j = 0; j < D; ++j) {
      const Segment& s = segments[j][static_cast<std::size_t>(choice[j])];
      part.region.box.low[j] = s.low, part.region.box.high[j] = s.high;
      part.owner[j] = s.owner, part.shift[j] = s.shift;
      sides[j] = s.side;
    }
    f(part, sides);
  });
}

}  // namespace

template <int D>
std::vector<HaloRegion<D>> HaloGeometry<D>::regions(const PerDim<int, D>& coords, HaloPattern pattern) const {
  const bool slabs = pattern == HaloPattern::slabs, box = shape.kind() == StencilShape<D>::Kind::moore;
  const Segments<D> segments = segments_of(*this, coords);
  const Box<D> block = blocks.box(coords);
  std::vector<Box<D>> needed;
  if (!slabs_possible(shape)) needed = shape.needed_boxes(block, steps, around);
  std::vector<HaloRegion<D>> all;
  for (int stage = 0; stage < std::max(1, D * slabs); ++stage) {
    Segments<D> ranges = segments;
    for (int j = 0; slabs && j < D; ++j) {
      const Segment own{block.low[j], block.high[j], coords[j], 0, 0};
      if (j < stage) ranges[j] = sides_of(segments[j], own, box);
      if (j > stage) ranges[j] = {own};
    }
    for_each_segment<D>(ranges, [&](HaloRegion<D>& part, const PerDim<std::int8_t, D>& sides) {
      if (slabs ? sides[stage] == 0 : sides == PerDim<std::int8_t, D>{}) return;
      part.stage = stage;
      for (const auto& region : shape.needed_in(block, steps, part.region.box, sides, needed)) {
        part.region = region;
        all.push_back(part);
      }
    });
  }
  return all;
}

template <int D>
std::vector<PerDim<int, D>> HaloGeometry<D>::possible_receivers(const PerDim<int, D>& coords) const {
  const auto [below, above] = widths();
  const Box<D> block = blocks.box(coords);
  Segments<D> readers;
  for (int j = 0; j < D; ++j) {
    // Whoever reads `above` cells up reads this block from below, and the other way round.
    auto& list = readers[j];
    append_segments(*this, j, block.low[j] - above[j], block.high[j] + below[j], 0, list);
    std::ranges::sort(list, {}, &Segment::owner);
    const auto same_owner = [](const Segment& a, const Segment& b) { return a.owner == b.owner; };
    list.erase(std::unique(list.begin(), list.end(), same_owner), list.end());
  }
  std::vector<PerDim<int, D>> receivers;
  for_each_segment<D>(readers, [&](const HaloRegion<D>& part, const auto&) { receivers.push_back(part.owner); });
  return receivers;
}

template <int D>
void refuse_reach_beyond_grid(const StencilShape<D>& shape, const BoundaryTopology<D>& around) {
  for (int j = 0; j < D; ++j) {
    const std::int64_t reach = std::max(shape.reach_low()[j], shape.reach_high()[j]);
    if (!around.periodic[j] && reach > around.global.extent(j))
      throw UsageError("the stencil reaches " + std::to_string(reach) + " cells beyond a side of dimension " +
                       std::to_string(j) + ", which has only " + std::to_string(around.global.extent(j)) +
                       (around.global.extent(j) == 1 ? " cell" : " cells") +
                       ": use more cells or a periodic dimension");
  }
}

template <int D>
double grid_images(const StencilShape<D>& shape, int reaches, const BoundaryTopology<D>& around) {
  const auto [low, high] = shape.ghost_widths(reaches, around);
  double images = 1;
  for (int j = 0; j < D; ++j) {
    const std::int64_t n = around.global.extent(j);
    if (around.periodic[j]) images *= static_cast<double>((low[j] + n - 1) / n + 1 + (high[j] + n - 1) / n);
  }
  return images;
}

#define ISOHALO_INSTANTIATE(D)                                                                   \
  template struct HaloGeometry<D>;                                                               \
  template void refuse_reach_beyond_grid<D>(const StencilShape<D>&, const BoundaryTopology<D>&); \
  template double grid_images<D>(const StencilShape<D>&, int, const BoundaryTopology<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
