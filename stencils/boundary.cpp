#include "stencils/boundary.hpp"

#include <cstdint>

#include "framework/halo/host_threads.hpp"
#include "framework/halo/outside_cells.hpp"

namespace isohalo {

namespace {

bool never_changes(const BoundaryRule& rule) {
  return rule.kind == Boundary::fixed && !(rule.expression && rule.expression->uses_time());
}

}  // namespace

template <int D>
template <class T, class Wanted>
void OutsideCells<D>::fill_where(const ArrayRef<T, D>& u, const Box<D>& valid, double time, const Wanted& wanted) {
  detail::for_each_side_around(u.allocated(), rules_, global_, valid, layers_low_, layers_high_,
                               [&](const detail::OutsideSide<D>& side) {
                                 if (!wanted(side.rule)) return;
                                 BoundaryValues<D>* values = nullptr;
                                 if (side.rule.expression) {
                                   values = &(side.outward < 0 ? values_low_ : values_high_)[side.j];
                                   values->bring(rules_, global_, side.j, side.outward, side.places, time);
                                 }
                                 detail::fill_side(u, side, values, host_workers());
                               });
}

template <int D>
template <class T>
void OutsideCells<D>::fill(const ArrayRef<T, D>& u, const Box<D>& valid, double time) {
  fill_where(u, valid, time, [&](const BoundaryRule& rule) { return !(filled_for_good_ && never_changes(rule)); });
}

template <int D>
template <class T>
void OutsideCells<D>::fill_for_good(const ArrayRef<T, D>& u, const Box<D>& valid) {
  fill_where(u, valid, 0, never_changes);
  filled_for_good_ = true;
}

#define ISOHALO_INSTANTIATE(T, D)                                                    \
  template void OutsideCells<D>::fill(const ArrayRef<T, D>&, const Box<D>&, double); \
  template void OutsideCells<D>::fill_for_good(const ArrayRef<T, D>&, const Box<D>&);
ISOHALO_FOR_EACH_FIELD(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
