/// kind = "acoustics" on devices; compiled apart, as it takes long.

#include "stencils/device/device_acoustics.hpp"
#include "stencils/device/device_path.hpp"

namespace isohalo {

template <class T, int D>
std::unique_ptr<Solver<D>> make_acoustics_on_device(const CartesianDomain<D>& domain,
                                                    const AcousticsEquation<D>& equation, int depth,
                                                    Exchange exchange) {
  return std::make_unique<DeviceAcoustics<T, D, DeviceSpace>>(domain, equation, depth, exchange);
}

#define ISOHALO_INSTANTIATE(T, D)                                                               \
  template std::unique_ptr<Solver<D>> make_acoustics_on_device<T, D>(const CartesianDomain<D>&, \
                                                                     const AcousticsEquation<D>&, int, Exchange);
ISOHALO_FOR_EACH_DEVICE_FLOAT(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
