#pragma once
/// Values for the cells of a user's array beyond the physical sides of the grid, by the boundary rules of
/// docs/model.md ("Outside cells"). Needs no Kokkos.

#include <algorithm>

#include "framework/domain/boundary_rules.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"

namespace isohalo {

namespace detail {

/// Gives the cells of `layer`, all at one coordinate of dimension j, what `rule` makes of those `to_source`
/// elements away.
template <class T, int D>
void fill_outside_layer(const ArrayRef<T, D>& u, const BoundaryRule& rule, const Box<D>& layer,
                        std::int64_t to_source) {
  const T value = static_cast<T>(rule.value);
  // The long loop goes over rows, or over the next dimension where a row is one cell.
  const int inner = D > 1 && layer.extent(D - 1) == 1 ? std::max(D - 2, 0) : D - 1;
  const std::int64_t n = layer.extent(inner), step = u.stride[inner];
  Box<D> lines = layer;
  lines.high[inner] = std::min(lines.low[inner] + 1, lines.high[inner]);
  for_each_cell(lines, [&](const Index<D>& i) {
    T* const p = &u.at(i);
    for (std::int64_t x = 0; x < n; ++x) {
      const T mirrored = rule.mirrors() ? p[x * step + to_source] : value;
      p[x * step] = rule.kind == Boundary::dirichlet ? static_cast<T>(T(2) * value - mirrored) : mirrored;
    }
  });
}

/// Throws UsageError unless the array is the domain's and the rules wrap where it does.
template <int D>
void check_outside(const CartesianDomain<D>& domain, const BoundaryRules<D>& rules, const Box<D>& owned);

}  // namespace detail

/// Fills all ghosts of `u` that lie beyond a side of the grid that is not periodic, beside ghosts of other ranks
/// too; these must be there, so an exchange goes before. Steps of a deep halo each call it before they read.
/// Dimensions are filled from the last one to dimension 0, so corners are right; mirrors give as many layers as the
/// cells held beside that side. The bits do not depend on the ranks. Host memory, any layout; local, no fence.
/// Throws UsageError when the array is not this rank's block or rules and domain disagree about what is periodic.
template <class T, int D>
void fill_outside_cells(const ArrayRef<T, D>& u, const CartesianDomain<D>& domain, const BoundaryRules<D>& rules) {
  detail::check_outside(domain, rules, u.owned);
  const Box<D> held = u.allocated(), grid = domain.global();
  Box<D> inside = held;
  for (int j = 0; j < D; ++j)
    if (!domain.periodic()[j])
      inside.low[j] = std::max(held.low[j], grid.low[j]), inside.high[j] = std::min(held.high[j], grid.high[j]);
  Box<D> filled = inside;
  for (int j = D - 1; j >= 0; --j) {
    // `edge`: the outermost cell inside the grid.
    const auto fill_side = [&](const BoundaryRule& rule, std::int64_t edge, int outward, std::int64_t layers) {
      if (rule.mirrors()) layers = std::min(layers, inside.extent(j));
      for (std::int64_t a = 1; a <= layers; ++a) {
        Box<D> layer = filled;
        layer.low[j] = edge + outward * a;
        layer.high[j] = layer.low[j] + 1;
        detail::fill_outside_layer(u, rule, layer, outward * (1 - 2 * a) * u.stride[j]);
      }
      return layers;
    };
    const std::int64_t below = fill_side(rules.low[j], inside.low[j], -1, inside.low[j] - held.low[j]);
    const std::int64_t above = fill_side(rules.high[j], inside.high[j] - 1, 1, held.high[j] - inside.high[j]);
    filled.low[j] -= below;
    filled.high[j] += above;
  }
}

}  // namespace isohalo
