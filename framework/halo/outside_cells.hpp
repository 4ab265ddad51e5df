#pragma once
/// Values for the cells, or faces, of a user's array beyond the physical sides of the grid, by the boundary rules
/// of docs/model.md ("Outside cells", "Fields on faces"). Needs no Kokkos.

#include <algorithm>

#include "framework/domain/boundary_rules.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/faces.hpp"
#include "framework/halo/workers.hpp"

namespace isohalo {

namespace detail {

/// p = f(source, v) for the cells p of the layer at coordinate `outside` of dimension j over the other dimensions
/// of `span`. `source` is the cell at coordinate `source_at`; v comes from `values`, `at(cell)` and `stride(k)` in
/// dimension k, or is `constant` where that is null. `workers` share a large layer, cut across its longest
/// dimension.
template <class T, int D, class Values, class F>
void fill_layer(const ArrayRef<T, D>& u, int j, std::int64_t outside, std::int64_t source_at, Box<D> span,
                const Values* values, double constant, const Workers& workers, const F& f) {
  span.low[j] = outside;
  span.high[j] = outside + 1;
  const std::int64_t to_source = (source_at - outside) * u.stride[j];
  // Innermost over the longest dimension: rows normally, the next dimension where the layer is a column.
  const int inner = j == D - 1 && D > 1 ? D - 2 : D - 1;
  int cut = 0;
  for (int k = 1; k < D; ++k)
    if (span.extent(k) > span.extent(cut)) cut = k;
  const std::int64_t bytes = span.cells() * static_cast<std::int64_t>(sizeof(T));
  workers.share(span.extent(cut), bytes, [&](std::int64_t first, std::int64_t last) {
    Box<D> lines = span;
    lines.low[cut] = span.low[cut] + first;
    lines.high[cut] = span.low[cut] + last;
    const std::int64_t n = lines.extent(inner), step = u.stride[inner];
    lines.high[inner] = std::min(lines.low[inner] + 1, lines.high[inner]);
    for_each_cell(lines, [&](const Index<D>& i) {
      T* p = &u.at(i);
      if (!values) {
        for (std::int64_t x = 0; x < n; ++x) p[x * step] = f(p[x * step + to_source], constant);
        return;
      }
      const double* const v = values->at(i);
      const std::int64_t v_step = values->stride(inner);
      for (std::int64_t x = 0; x < n; ++x) p[x * step] = f(p[x * step + to_source], v[x * v_step]);
    });
  });
}

/// Calls fill(f) with the function f(mirrored, value) of the rule for outside cells at this distance from their
/// mirrored ones.
template <class T, class Fill>
void with_rule(const BoundaryRule& rule, double distance, const Fill& fill) {
  switch (rule.kind) {
    case Boundary::fixed:
      return fill([](const T&, double v) { return static_cast<T>(v); });
    case Boundary::neumann:
      if (!rule.has_gradient()) return fill([](const T& m, double) { return m; });
      return fill([=](const T& m, double g) { return static_cast<T>(m + static_cast<T>(distance * g)); });
    case Boundary::dirichlet:
      return fill([](const T& m, double v) { return static_cast<T>(T(2) * static_cast<T>(v) - m); });
    case Boundary::robin: {
      const double a = 0.5 * rule.parameters[0], b = rule.parameters[1] / distance, sum = a + b;
      const T c = static_cast<T>((a - b) / sum);
      return fill([=](const T& m, double v) { return static_cast<T>(static_cast<T>(v / sum) - c * m); });
    }
    default: {
      const bool mirrors = rule.own->mirrors;
      return fill([&, mirrors](const T& m, double v) {
        return static_cast<T>(
            rule.own->outside({mirrors ? static_cast<double>(m) : 0, distance, v, rule.parameters}));
      });
    }
  }
}

/// Layers of outside cells beyond one side of the grid.
template <int D>
struct OutsideSide {
  const BoundaryRule& rule;
  int j, outward;       ///< the dimension; -1: its lower side, 1: the upper one
  std::int64_t layers;  ///< at least 1
  std::int64_t edge;    ///< coordinate of the outermost cells inside
  double spacing;       ///< of cells
  int on_side;          ///< 1: the outermost layer inside lies on the side, as faces of this dimension do; else 0
  Box<D> span;          ///< the cells of each layer; in dimension j it means nothing
  Box<D> places;        ///< where values are asked for; one cell thick if a place of the face stands for all layers

  std::int64_t outside(std::int64_t layer) const { return edge + outward * (layer + 1); }
  std::int64_t source(std::int64_t layer) const {
    return rule.mirrors() ? edge - outward * (layer + on_side) : outside(layer);
  }
  /// Between the centres of an outside cell and the mirrored one.
  double distance(std::int64_t layer) const { return static_cast<double>(2 * layer + 1 + on_side) * spacing; }
};

/// fill(side) for the outside cells around `valid`, the box of cells that hold values, where it touches a side that
/// is not periodic: at most so many layers there, and within `held`. Dimensions go from the fastest to the slowest,
/// so that a corner gets dimension 0's rule applied to the value that the others give. `face`: the boxes are of the
/// faces of that dimension; -1: of cells.
template <int D, class Fill>
void for_each_side_around(const Box<D>& held, const BoundaryRules<D>& rules, const Box<D>& global,
                          const Box<D>& valid, const Index<D>& layers_low, const Index<D>& layers_high,
                          const Fill& fill, int face = -1) {
  Box<D> span = valid;
  /// Returns how many layers were filled.
  const auto fill_side = [&](int j, int outward, std::int64_t layers) {
    const BoundaryRule& rule = outward < 0 ? rules.low[j] : rules.high[j];
    const std::int64_t edge = outward < 0 ? global.low[j] : global.high[j] - 1;
    const int on_side = j == face ? 1 : 0;
    // Cells fill as many layers again where they are mirrored, any number without.
    if (rule.mirrors()) layers = std::min(layers, valid.extent(j) - on_side);
    if (layers <= 0) return std::int64_t{0};
    Box<D> places = span;
    const bool own_centre = rule.kind == Boundary::fixed;
    places.low[j] = !own_centre ? edge : outward < 0 ? edge - layers : edge + 1;
    places.high[j] = own_centre ? places.low[j] + layers : edge + 1;
    const double h = rules.length[j] / static_cast<double>(global.extent(j) - on_side);
    fill(OutsideSide<D>{rule, j, outward, layers, edge, h, on_side, span, places});
    return layers;
  };
  for (int j = D - 1; j >= 0; --j) {
    if (rules.low[j].kind == Boundary::periodic) continue;
    Box<D> next = span;
    // A deep halo may end at the grid's side: then nobody reads beyond.
    if (valid.low[j] == global.low[j])
      next.low[j] -= fill_side(j, -1, std::min(layers_low[j], global.low[j] - held.low[j]));
    if (valid.high[j] == global.high[j])
      next.high[j] += fill_side(j, 1, std::min(layers_high[j], held.high[j] - global.high[j]));
    span = next;
  }
}

/// Fills those of one side. `values`: as `fill_layer` takes them.
template <class T, int D, class Values>
void fill_side(const ArrayRef<T, D>& u, const OutsideSide<D>& side, const Values* values, const Workers& workers) {
  for (std::int64_t k = 0; k < side.layers; ++k)
    with_rule<T>(side.rule, side.distance(k), [&](const auto& f) {
      fill_layer(u, side.j, side.outside(k), side.source(k), side.span, values, side.rule.value, workers, f);
    });
}

/// The values of rules that are numbers.
template <int D>
struct NoValues {
  const double* at(const Index<D>&) const { return nullptr; }
  std::int64_t stride(int) const { return 0; }
};

/// Throws UsageError unless the array is the domain's and well laid out, and the rules wrap where the domain does
/// and, for faces, are some that faces at sides have.
template <int D>
void check_outside(const CartesianDomain<D>& domain, const BoundaryRules<D>& rules, const ErasedArray<D>& a);

/// For an array on the faces of dimension `face`, of -1 in cells.
template <class T, int D>
void fill_outside_of(const ArrayRef<T, D>& u, const CartesianDomain<D>& domain, const BoundaryRules<D>& rules,
                     int face) {
  check_outside(domain, rules, on_faces(u, face));
  const Box<D> held = u.allocated(), grid = field_domain(domain, face).global();
  Box<D> inside = held;
  for (int j = 0; j < D; ++j)
    if (!domain.periodic()[j])
      inside.low[j] = std::max(held.low[j], grid.low[j]), inside.high[j] = std::min(held.high[j], grid.high[j]);
  if (face >= 0 && !domain.periodic()[face])
    for (const bool low : {true, false}) {
      const BoundaryRule& rule = low ? rules.low[face] : rules.high[face];
      Box<D> side = inside;
      side.low[face] = std::max(side.low[face], low ? grid.low[face] : grid.high[face] - 1);
      side.high[face] = std::min(side.high[face], low ? grid.low[face] + 1 : grid.high[face]);
      if (rule.kind == Boundary::dirichlet || rule.kind == Boundary::fixed)
        for_each_cell(side, [&](const Index<D>& i) { u.at(i) = static_cast<T>(rule.value); });
    }
  Index<D> all;
  for (int j = 0; j < D; ++j) all[j] = held.extent(j);
  for_each_side_around(
      held, rules, grid, inside, all, all,
      [&](const OutsideSide<D>& side) { fill_side<T, D, NoValues<D>>(u, side, nullptr, {}); }, face);
}

}  // namespace detail

/// Fills all ghosts of `u` that lie beyond a side of the grid that is not periodic, beside ghosts of other ranks
/// too; these must be there, so an exchange goes before. Steps of a deep halo each call it before they read.
/// Dimensions are filled from the last one to dimension 0, so corners are right; mirrors give as many layers as the
/// cells held beside that side. The bits do not depend on the ranks. Host memory, any layout; local, no fence.
/// All rules with numbers; those with expressions are for solvers (stencils/boundary.hpp). Rules that depend on the
/// cells' width need `rules.length`. Throws UsageError when the array is not this rank's block, rules and domain
/// disagree about what is periodic, cells overlap, and for expressions and lengths that are missing.
template <class T, int D>
void fill_outside_cells(const ArrayRef<T, D>& u, const CartesianDomain<D>& domain, const BoundaryRules<D>& rules) {
  detail::fill_outside_of(u, domain, rules, -1);
}

/// The same for an array on the faces of dimension `face` (faces.hpp), which its outermost faces on the sides
/// belong to: `dirichlet` and `fixed` set these to their value. Face -i mirrors face i (mirrors give a layer fewer
/// there). Of that dimension there are no `robin` and no rules of one's own. Throws as fill_outside_cells, and for
/// another dimension.
template <class T, int D>
void fill_outside_faces(const ArrayRef<T, D>& u, int face, const CartesianDomain<D>& domain,
                        const BoundaryRules<D>& rules) {
  if (face < 0) throw UsageError("fill_outside_faces: dimension " + std::to_string(face) + "; the first one is 0");
  detail::fill_outside_of(u, domain, rules, face);
}

}  // namespace isohalo
