#pragma once
/// The solvers of poisson whose fields lie in the memory of a Kokkos execution space; compiled apart, as they take
/// long.

#include <memory>

#include "framework/run/solver.hpp"
#include "stencils/poisson_system.hpp"

namespace isohalo {

/// That of equation.method, in the memory of DeviceSpace (device_field.hpp). Collective in order.
template <class T, int D>
std::unique_ptr<Solver<D>> make_poisson_on_device(const CartesianDomain<D>& domain,
                                                  const PoissonEquation<D>& equation, int depth, Exchange exchange);

}  // namespace isohalo
