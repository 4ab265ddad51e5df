#pragma once
/// Filling the cells outside the grid by their boundary rules (docs/model.md, "Outside cells").

#include "framework/domain/boundary_rules.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/halo/outside_cells.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "stencils/boundary_values.hpp"

namespace isohalo {

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
  /// Expressions are evaluated once per place and time. Local.
  template <class T>
  void fill(const ArrayRef<T, D>& u, const Box<D>& valid, double time) {
    detail::fill_around(u, rules_, global_, valid, layers_low_, layers_high_, host_workers(),
                        [&](int j, int outward, const Box<D>& places) -> const BoundaryValues<D>* {
                          if (!(outward < 0 ? rules_.low : rules_.high)[j].expression) return nullptr;
                          BoundaryValues<D>& values = (outward < 0 ? values_low_ : values_high_)[j];
                          values.bring(rules_, global_, j, outward, places, time);
                          return &values;
                        });
  }

 private:
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
