#include "stencils/boundary.hpp"

#include <cstdint>

#include "framework/halo/host_threads.hpp"
#include "framework/halo/outside_cells.hpp"

namespace isohalo {

template <int D>
template <class T>
void OutsideCells<D>::fill(const ArrayRef<T, D>& u, const Box<D>& valid, double time) {
  detail::fill_around(u, rules_, global_, valid, layers_low_, layers_high_, host_workers(),
                      [&](int j, int outward, const Box<D>& places) -> const BoundaryValues<D>* {
                        if (!(outward < 0 ? rules_.low : rules_.high)[j].expression) return nullptr;
                        BoundaryValues<D>& values = (outward < 0 ? values_low_ : values_high_)[j];
                        values.bring(rules_, global_, j, outward, places, time);
                        return &values;
                      });
}

#define ISOHALO_INSTANTIATE(D)                                                            \
  template void OutsideCells<D>::fill(const ArrayRef<double, D>&, const Box<D>&, double); \
  template void OutsideCells<D>::fill(const ArrayRef<float, D>&, const Box<D>&, double);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE
template void OutsideCells<2>::fill(const ArrayRef<std::uint8_t, 2>&, const Box<2>&, double);

}  // namespace isohalo
