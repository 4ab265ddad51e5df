#pragma once
/// How often ghosts hold a grid that is smaller than they are wide.

#include <cstdint>

#include "framework/halo/stencil_shape.hpp"

namespace isohalo::detail {

/// Images of the grid that the ghosts of `reaches` stencil reaches touch, itself among them: each is a region of
/// its own in a schedule. A double, since there may be any number. Local.
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

}  // namespace isohalo::detail
