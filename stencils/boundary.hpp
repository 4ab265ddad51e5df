#pragma once
/// Filling the cells outside the grid by their boundary rules (docs/model.md, "Outside cells").

#include "framework/domain/boundary_rules.hpp"
#include "framework/halo/array_ref.hpp"
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
  /// T: float, double; in 2-D std::uint8_t as well.
  template <class T>
  void fill(const ArrayRef<T, D>& u, const Box<D>& valid, double time);

  /// Fills those that never change, beyond sides that are `fixed` whatever the time: from now on `fill` leaves them
  /// alone. For each array once, with the largest box that it will be called with. Local.
  template <class T>
  void fill_for_good(const ArrayRef<T, D>& u, const Box<D>& valid);

 private:
  template <class T, class Wanted>
  void fill_where(const ArrayRef<T, D>& u, const Box<D>& valid, double time, const Wanted& wanted);

  BoundaryRules<D> rules_;
  Box<D> global_;
  Index<D> layers_low_, layers_high_;
  PerDim<BoundaryValues<D>, D> values_low_{}, values_high_{};
  bool filled_for_good_ = false;
};

/// Fills the cells outside the grid once, at time 0 (see OutsideCells). Local.
template <class T, int D>
void fill_outside(const ArrayRef<T, D>& u, const BoundaryRules<D>& rules, const Box<D>& global, const Box<D>& valid,
                  const Index<D>& layers_low, const Index<D>& layers_high) {
  OutsideCells<D>(rules, global, layers_low, layers_high).fill(u, valid, 0.0);
}

}  // namespace isohalo
