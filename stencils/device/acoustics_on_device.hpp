#pragma once
/// The solver of acoustics whose fields lie in the memory of a Kokkos execution space; compiled apart, as it takes
/// long.

#include <memory>

#include "stencils/solvers/acoustics_equation.hpp"

namespace isohalo {

/// In the memory of DeviceSpace (device_field.hpp). The rules are none of one's own. Collective in order.
template <class T, int D>
std::unique_ptr<Solver<D>> make_acoustics_on_device(const CartesianDomain<D>& domain,
                                                    const AcousticsEquation<D>& equation, int depth,
                                                    Exchange exchange);

}  // namespace isohalo
