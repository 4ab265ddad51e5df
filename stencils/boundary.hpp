#pragma once
/// Filling the cells outside the grid by their boundary rules (docs/model.md, "Outside cells").

#include <cmath>

#include "framework/domain/boundary_rules.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "stencils/boundary_values.hpp"

namespace isohalo {

namespace detail {

/// p = f(source, v) for the cells p of the layer at coordinate `outside` of dimension j over the other dimensions
/// of `span`. `source` is the cell at coordinate `source_at`, v comes from `values`, or is `constant` without them.
/// Several threads fill large layers.
template <class T, int D, class F>
void fill_layer(const ArrayRef<T, D>& u, int j, std::int64_t outside, std::int64_t source_at, Box<D> span,
                const BoundaryValues<D>* values, double constant, const F& f) {
  span.low[j] = outside;
  span.high[j] = outside + 1;
  const std::int64_t to_source = (source_at - outside) * u.stride[j];
  // Innermost over the longest dimension: rows normally, the next dimension where the layer is a column.
  const int inner = j == D - 1 && D > 1 ? D - 2 : D - 1;
  const auto fill_part = [&](const Box<D>& part, std::int64_t) {
    const std::int64_t n = part.extent(inner), step = u.stride[inner];
    Box<D> lines = part;
    lines.high[inner] = lines.low[inner] + 1;
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
  };
  constexpr std::int64_t least_cells = 8192;  // take longer than waking a thread
  for_each_part("isohalo::fill_layer", span, least_cells, fill_part);
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

}  // namespace detail

/// The cells outside the grid of one field, filled at one time after the other.
template <int D>
class OutsideCells {
 public:
  /// At most so many `layers` on the sides.
  OutsideCells(const BoundaryRules<D>& rules, const Box<D>& global, const Index<D>& layers_low,
               const Index<D>& layers_high)
      : rules_(rules), global_(global), layers_low_(layers_low), layers_high_(layers_high) {}

  /// Fills the ghost cells outside the grid where `valid` touches a non-periodic side, by the rules' values at
  /// `time`. `valid` is the box of cells that hold values; its ghosts in the other dimensions are covered too.
  /// Dimensions go from the fastest to the slowest, so that a corner gets dimension 0's rule applied to the value
  /// the others give. Expressions are evaluated once per place and time. Local.
  template <class T>
  void fill(const ArrayRef<T, D>& u, const Box<D>& valid, double time) {
    Box<D> span = valid;
    const Box<D> held = u.allocated();  // a deep halo may end at the grid's side: then nobody reads beyond
    for (int j = D - 1; j >= 0; --j) {
      if (rules_.low[j].kind == Boundary::periodic) continue;
      Box<D> next = span;
      if (valid.low[j] == global_.low[j])
        next.low[j] -=
            fill_side(u, valid, span, j, -1, std::min(layers_low_[j], global_.low[j] - held.low[j]), time);
      if (valid.high[j] == global_.high[j])
        next.high[j] +=
            fill_side(u, valid, span, j, 1, std::min(layers_high_[j], held.high[j] - global_.high[j]), time);
      span = next;
    }
  }

 private:
  /// One side, `outward` -1 or 1. Returns how many layers were filled.
  template <class T>
  std::int64_t fill_side(const ArrayRef<T, D>& u, const Box<D>& valid, const Box<D>& span, int j, int outward,
                         std::int64_t layers, double time) {
    const BoundaryRule& rule = outward < 0 ? rules_.low[j] : rules_.high[j];
    const std::int64_t edge = outward < 0 ? global_.low[j] : global_.high[j] - 1;  // the outermost cell inside
    // Cells fill as many layers again where they are mirrored, any number without.
    if (rule.mirrors()) layers = std::min(layers, valid.extent(j));
    BoundaryValues<D>* values = nullptr;
    if (rule.expression && layers > 0) {
      values = outward < 0 ? &values_low_[j] : &values_high_[j];
      Box<D> where = span;
      const bool own_centre = rule.kind == Boundary::fixed;
      where.low[j] = !own_centre ? edge : outward < 0 ? edge - layers : edge + 1;
      where.high[j] = own_centre ? where.low[j] + layers : edge + 1;
      values->bring(rules_, global_, j, outward, where, time);
    }
    const double h = rules_.length[j] / static_cast<double>(global_.extent(j));
    for (std::int64_t k = 0; k < layers; ++k) {
      const std::int64_t outside = edge + outward * (k + 1);
      const std::int64_t source = rule.mirrors() ? edge - outward * k : outside;
      detail::with_rule<T>(rule, static_cast<double>(2 * k + 1) * h, [&](const auto& f) {
        detail::fill_layer(u, j, outside, source, span, values, rule.value, f);
      });
    }
    return layers;
  }

  BoundaryRules<D> rules_;
  Box<D> global_;
  Index<D> layers_low_, layers_high_;
  PerDim<BoundaryValues<D>, D> values_low_{}, values_high_{};
};

/// Fills the cells outside the grid once, at time 0 (see OutsideCells). Local.
template <class T, int D>
void fill_outside(const ArrayRef<T, D>& u, const BoundaryRules<D>& rules, const Box<D>& global, const Box<D>& valid,
                  const Index<D>& layers_low, const Index<D>& layers_high) {
  OutsideCells<D>(rules, global, layers_low, layers_high).fill(u, valid, 0.0);
}

}  // namespace isohalo
