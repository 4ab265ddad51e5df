#pragma once
/// Filling the cells outside the grid by their boundary rules (docs/model.md, "Outside cells").

#include "framework/domain/boundary_rules.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/stencil_shape.hpp"

namespace isohalo {

namespace detail {

/// Fills the layer at coordinate `outside` of dimension j over the other dimensions of `span`.
template <class T, int D>
void fill_layer(const ArrayRef<T, D>& u, const BoundaryRule& rule, int j, std::int64_t outside,
                std::int64_t mirrored, Box<D> span) {
  span.low[j] = outside;
  span.high[j] = outside + 1;
  const std::int64_t to_source = (mirrored - outside) * u.stride[j];
  const T value = static_cast<T>(rule.value);
  // Innermost over the longest dimension: rows normally, the next dimension where the layer is a column.
  const int inner = j == D - 1 && D > 1 ? D - 2 : D - 1;
  const std::int64_t n = span.extent(inner), step = u.stride[inner];
  Box<D> lines = span;
  lines.high[inner] = std::min(lines.low[inner] + 1, lines.high[inner]);
  for_each_cell(lines, [&](const Index<D>& i) {
    T* p = &u.at(i);
    if (rule.kind == Boundary::fixed)
      for (std::int64_t x = 0; x < n; ++x) p[x * step] = value;
    else if (rule.kind == Boundary::neumann)
      for (std::int64_t x = 0; x < n; ++x) p[x * step] = p[x * step + to_source];
    else
      for (std::int64_t x = 0; x < n; ++x) p[x * step] = static_cast<T>(T(2) * value - p[x * step + to_source]);
  });
}

}  // namespace detail

/// Fills the ghost cells outside the grid, `layers` deep where `valid` touches a non-periodic side. `valid` is the
/// box of cells that hold values; its ghosts in the other dimensions are covered too. Dimensions go from the
/// fastest to the slowest, so that a corner gets dimension 0's rule applied to the value the others give. Local.
template <class T, int D>
void fill_outside(const ArrayRef<T, D>& u, const BoundaryRules<D>& rules, const Box<D>& global, const Box<D>& valid,
                  const Index<D>& layers_low, const Index<D>& layers_high) {
  Box<D> span = valid;
  const Box<D> held = u.allocated();  // a deep halo may end at the grid's side: then nobody reads beyond
  for (int j = D - 1; j >= 0; --j) {
    if (rules.low[j].kind == Boundary::periodic) continue;
    // `edge`: the outermost cell inside the grid. Returns how many layers beyond it were filled.
    const auto fill_side = [&](const BoundaryRule& rule, std::int64_t edge, int outward, std::int64_t layers) {
      // Cells fill as many layers again where they are mirrored, any number with a fixed value.
      if (rule.kind != Boundary::fixed) layers = std::min(layers, valid.extent(j));
      for (std::int64_t a = 1; a <= layers; ++a)
        detail::fill_layer(u, rule, j, edge + outward * a, edge - outward * (a - 1), span);
      return layers;
    };
    Box<D> next = span;
    if (valid.low[j] == global.low[j])
      next.low[j] -=
          fill_side(rules.low[j], global.low[j], -1, std::min(layers_low[j], global.low[j] - held.low[j]));
    if (valid.high[j] == global.high[j])
      next.high[j] +=
          fill_side(rules.high[j], global.high[j] - 1, 1, std::min(layers_high[j], held.high[j] - global.high[j]));
    span = next;
  }
}

}  // namespace isohalo
