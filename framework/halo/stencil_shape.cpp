#include "framework/halo/stencil_shape.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "datatypes/error.hpp"
#include "framework/halo/cell_set.hpp"

namespace isohalo {

template <int D>
StencilShape<D> StencilShape<D>::moore(int radius) {
  return of(isohalo::moore<D>(radius, Self::include));
}
template <int D>
StencilShape<D> StencilShape<D>::von_neumann(int radius) {
  return of(isohalo::von_neumann<D>(radius, Self::include));
}
template <int D>
StencilShape<D> StencilShape<D>::star(int radius) {
  return of(isohalo::star<D>(radius, Self::include));
}

namespace {

/// Each offset once, in order, with the cell itself: lists with the same of these need the same ghosts.
template <int D>
Offsets<D> cells_of(Offsets<D> offsets) {
  offsets.push_back(Index<D>{});
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

}  // namespace

template <int D>
StencilShape<D> StencilShape<D>::of(const Offsets<D>& offsets) {
  StencilShape s;
  s.offsets_ = offsets;
  std::int64_t radius = 0;
  for (const auto& o : offsets)
    for (int j = 0; j < D; ++j) {
      s.reach_low_[j] = std::max(s.reach_low_[j], -o[j]);
      s.reach_high_[j] = std::max(s.reach_high_[j], o[j]);
      radius = std::max({radius, o[j], -o[j]});
    }
  if (radius > 1000)
    throw UsageError("a stencil offset reaches " + std::to_string(radius) + " cells; the limit is 1000");
  s.radius_ = static_cast<int>(radius);

  const Offsets<D> sorted = cells_of<D>(offsets);
  const std::size_t r = static_cast<std::size_t>(radius), d = static_cast<std::size_t>(D), n = sorted.size();
  const auto on_axis = [](const Index<D>& o) { return std::count(o.begin(), o.end(), 0) >= D - 1; };
  std::size_t cube = 1;
  for (int j = 0; j < D; ++j) cube *= 2 * r + 1;
  if (n == 2 * d * r + 1 && std::all_of(sorted.begin(), sorted.end(), on_axis))
    s.kind_ = Kind::star;
  else if (n == cube)
    s.kind_ = Kind::moore;
  else if (n > 2 * d * r + 1 && cube <= 1 << 24 &&  // the most that the list may be taken from
           sorted == isohalo::von_neumann<D>(s.radius_, Self::include))
    s.kind_ = Kind::von_neumann;
  return s;
}

template <int D>
std::string StencilShape<D>::text() const {
  constexpr const char* names[] = {"moore", "von_neumann", "star"};
  if (kind_ != Kind::custom)
    return names[static_cast<std::size_t>(kind_)] + (" of radius " + std::to_string(radius_));
  std::string list = "offsets";
  for (const Index<D>& o : cells_of<D>(offsets_))
    for (int j = 0; j < D; ++j) list += (j ? "," : " ") + std::to_string(o[j]);
  return list;
}

template <int D>
std::int64_t StencilShape<D>::budget(int steps) const {
  return static_cast<std::int64_t>(steps) * radius_ / granule();
}

template <int D>
Box<D> StencilShape<D>::reached(const Box<D>& block, int steps) const {
  const Index<D> reach = index_of<D>(static_cast<std::int64_t>(steps) * radius_);
  return block.grown(reach, reach);
}

template <int D>
std::array<Index<D>, 2> StencilShape<D>::ghost_widths(int steps, const BoundaryTopology<D>& around) const {
  std::array<Index<D>, 2> w{reach_low_, reach_high_};
  for (int j = 0; j < D; ++j) {
    if (around.mirror_low[j] || around.mirror_high[j]) w[0][j] = w[1][j] = std::max(w[0][j], w[1][j]);
    w[0][j] *= steps;
    w[1][j] *= steps;
  }
  return w;
}

namespace {

/// Rows of block + L1-like ball: each choice of depths in the slower dimensions leaves a budget for the fastest
/// one.
template <int D>
void ball_rows(const Box<D>& block, std::int64_t granule, int j, std::int64_t left, Box<D> b,
               std::vector<Box<D>>& out) {
  const std::int64_t reach = left * granule;
  if (j == D - 1) {
    b.low[j] = block.low[j] - reach;
    b.high[j] = block.high[j] + reach;
    out.push_back(b);
    return;
  }
  for (std::int64_t depth = -reach; depth <= reach; ++depth) {  // 0: beside the block itself
    b.low[j] = depth > 0 ? block.high[j] + depth - 1 : block.low[j] + depth;
    b.high[j] = depth == 0 ? block.high[j] : b.low[j] + 1;
    ball_rows(block, granule, j + 1, left - (std::abs(depth) + granule - 1) / granule, b, out);
  }
}

}  // namespace

template <int D>
std::vector<Box<D>> StencilShape<D>::custom_boxes(const Box<D>& block, int steps,
                                                  const BoundaryTopology<D>& around) const {
  // Deep inside a large block all cells are alike, so the sets are computed on a small one and stretched.
  Index<D> cutout{};
  const auto [reach_low, reach_high] = ghost_widths(steps, around);
  Box<D> small = block;
  BoundaryTopology<D> near = around;
  for (int j = 0; j < D; ++j) {
    cutout[j] = std::max<std::int64_t>(0, block.extent(j) - (2 * (reach_low[j] + reach_high[j]) + 1));
    small.high[j] -= cutout[j];
    near.global.high[j] -= cutout[j];
  }
  CellSet<D> cells(small.grown(reach_low, reach_high));
  cells.insert(small);
  cells.grow(offsets_, steps, near);
  std::vector<Box<D>> boxes = cells.boxes();
  for (auto& b : boxes)
    for (int j = 0; j < D; ++j) {
      const std::int64_t middle = small.low[j] + reach_low[j] + reach_high[j];
      if (b.low[j] > middle) b.low[j] += cutout[j];
      if (b.high[j] > middle) b.high[j] += cutout[j];
    }
  return boxes;
}

template <int D>
std::vector<Box<D>> StencilShape<D>::needed_boxes(const Box<D>& block, int steps,
                                                  const BoundaryTopology<D>& around) const {
  if (steps == 0) return {block};
  std::vector<Box<D>> boxes;
  if (kind_ == Kind::custom)
    boxes = custom_boxes(block, steps, around);
  else if (kind_ == Kind::moore)
    boxes.push_back(reached(block, steps));
  else
    ball_rows<D>(block, granule(), 0, budget(steps), block, boxes);
  for (auto& b : boxes) b = b.intersect(around.existing());
  std::erase_if(boxes, [](const Box<D>& b) { return b.empty(); });
  return boxes;
}

template <int D>
std::vector<Region<D>> StencilShape<D>::needed_in(const Box<D>& block, int steps, const Box<D>& part,
                                                  const PerDim<std::int8_t, D>& side,
                                                  const std::vector<Box<D>>& needed) const {
  std::vector<Region<D>> regions;
  if (kind_ == Kind::custom) {
    for (const auto& b : needed)
      if (const Box<D> common = b.intersect(part); !common.empty()) regions.push_back(Region<D>::whole(common));
    return regions;
  }
  Region<D> r = Region<D>::whole(part.intersect(reached(block, steps)));
  const auto cuts = D - std::count(side.begin(), side.end(), 0);
  if (kind_ != Kind::moore && cuts > 1) {  // beside a single face every shape is a box
    r.side = side;
    r.granule = granule();
    r.budget = budget(steps);
    for (int j = 0; j < D; ++j) r.edge[j] = side[j] > 0 ? block.high[j] : block.low[j];
  }
  if (!r.empty()) regions.push_back(r);
  return regions;
}

#define ISOHALO_INSTANTIATE(D) template class StencilShape<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
