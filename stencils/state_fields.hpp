#pragma once
/// What steppers of a state have in common: its fields by names, and which cells their steps need.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "framework/domain/boundary_rules.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/stencil_shape.hpp"

namespace isohalo {

/// What a stepper advances, by names.
struct StateFields {
  std::vector<std::string> state;
  /// The fields a step before, if a step reads them; it reads no neighbors of theirs, and takes one stage.
  std::vector<std::string> before{};
  std::vector<std::string> coefficients{};  ///< read by all stages, with neighbors unless they depend on time
  int stages = 1;
  std::vector<double> stage_times{0.0};  ///< of the state that a stage reads, after the step's begin in steps
  bool one_exchange = false;             ///< all stages of a step follow one, also with one step per exchange
  std::size_t kept = 0;  ///< arrays of binary64 for what of the coefficients does not depend on time

  /// Arrays that such a stepper holds, but for these.
  std::size_t arrays() const { return state.size() * (stages > 1 ? 3 : 2) + coefficients.size(); }
  /// Of a cell in all of them.
  template <class T>
  std::int64_t cell_bytes() const {
    return static_cast<std::int64_t>(arrays() * sizeof(T) + kept * sizeof(double));
  }
  /// Stencil reaches that `depth` steps per exchange take; with one step, each stage has an exchange, unless one is
  /// for all.
  int reaches(int depth) const { return depth > 1 || one_exchange ? stages * depth : depth; }

  /// "the change of u, v and w"
  std::string change() const {
    std::string text = "the change of " + state[0];
    for (std::size_t f = 1; f < state.size(); ++f) text += (f + 1 < state.size() ? ", " : " and ") + state[f];
    return text;
  }

  /// Coefficients and masks are mirrored outside the grid whatever the fields' rules, so their mirrored cells are
  /// needed.
  template <int D>
  BoundaryTopology<D> topology(const std::vector<BoundaryRules<D>>& rules, const Box<D>& global) const {
    BoundaryTopology<D> around = boundary_topology_of(std::span<const BoundaryRules<D>>(rules), global);
    for (int j = 0; j < D && !coefficients.empty(); ++j)
      if (!around.periodic[j]) around.mirror_low[j] = around.mirror_high[j] = true;
    return around;
  }
};

/// What a step, or a stage of it, reads around a cell.
template <int D>
struct StateShapes {
  StencilShape<D> all;                       ///< of all fields and coefficients together
  std::vector<StencilShape<D>> of_fields{};  ///< by field of the state, each within `all`; empty: `all` for each

  // NOLINTNEXTLINE(google-explicit-constructor): most steppers have one for all
  StateShapes(const StencilShape<D>& shape) : all(shape) {}

  /// Do fields get ghosts by shapes of their own? Only where a single sweep follows: else those before the last one
  /// compute ghosts of all fields. Not where all read their own cell alone, since a plan has one need at least.
  bool differ(int sweeps) const {
    return sweeps == 1 &&
           std::any_of(of_fields.begin(), of_fields.end(), [](const auto& s) { return s.radius() > 0; });
  }
  /// Does field f travel in such exchanges?
  bool travels(std::size_t f, int sweeps) const { return !differ(sweeps) || of_fields[f].radius() > 0; }
  /// One for each field that travels, or a single one for all.
  std::vector<HaloNeed<D>> needs(int sweeps) const {
    if (!differ(sweeps)) return {{all, sweeps}};
    std::vector<HaloNeed<D>> list;
    for (const auto& shape : of_fields)
      if (shape.radius() > 0) list.push_back({shape, sweeps});
    return list;
  }
};

namespace detail {

/// All cells inside the grid that m steps from a block can reach. Not the bounding box of the needed cells: a
/// stencil may read outside cells beside cells that it does not read.
template <int D>
Box<D> reachable(const Box<D>& owned, const StencilShape<D>& shape, int m, const BoundaryTopology<D>& around) {
  const auto reach = shape.ghost_widths(m, around);
  Box<D> all = owned.grown(reach[0], reach[1]);
  for (int j = 0; j < D; ++j)
    if (!around.periodic[j]) {
      all.low[j] = std::max(all.low[j], around.global.low[j]);
      all.high[j] = std::min(all.high[j], around.global.high[j]);
    }
  return all;
}

/// The owned cells whose values of a step read no ghosts of other ranks; may be empty.
template <int D>
Box<D> without_ghosts(const CartesianDomain<D>& domain, const Index<D>& layers_low, const Index<D>& layers_high) {
  Box<D> inner = domain.owned();
  for (int j = 0; j < D; ++j)
    if (domain.decomposition().blocks(j) > 1) inner.low[j] += layers_low[j], inner.high[j] -= layers_high[j];
  return inner;
}

/// Those of `reached` that are in place while messages travel: no ghosts of other ranks.
template <int D>
Box<D> in_place(const CartesianDomain<D>& domain, Box<D> reached) {
  for (int j = 0; j < D; ++j)
    if (domain.decomposition().blocks(j) > 1)
      reached.low[j] = domain.owned().low[j], reached.high[j] = domain.owned().high[j];
  return reached;
}

/// Those of coefficients.
template <int D>
BoundaryRules<D> mirrored_rules(const BoundaryTopology<D>& around) {
  BoundaryRules<D> mirrored;
  for (int j = 0; j < D; ++j)
    if (!around.periodic[j]) mirrored.low[j].kind = mirrored.high[j].kind = Boundary::neumann;
  return mirrored;
}

}  // namespace detail

}  // namespace isohalo
