/// kind = "poisson" on devices; compiled apart, as it takes long.

#include "stencils/device/device_conjugate_gradients.hpp"
#include "stencils/device/device_path.hpp"
#include "stencils/device/device_relaxation.hpp"

namespace isohalo {

template <class T, int D>
std::unique_ptr<Solver<D>> make_poisson_on_device(const CartesianDomain<D>& domain,
                                                  const PoissonEquation<D>& equation, int depth,
                                                  Exchange exchange) {
  if (equation.method == PoissonMethod::cg)
    return std::make_unique<DeviceConjugateGradients<T, D, DeviceSpace>>(domain, equation, exchange);
  return std::make_unique<DeviceRelaxation<T, D, DeviceSpace>>(domain, equation, depth, exchange);
}

#define ISOHALO_INSTANTIATE(T, D)                                                             \
  template std::unique_ptr<Solver<D>> make_poisson_on_device<T, D>(const CartesianDomain<D>&, \
                                                                   const PoissonEquation<D>&, int, Exchange);
ISOHALO_FOR_EACH_DEVICE_FLOAT(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
