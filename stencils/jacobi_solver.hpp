#pragma once
/// poisson, method = "jacobi": damped Jacobi steps, as deep as the halo allows.

#include "stencils/relaxation.hpp"

namespace isohalo {

template <class T, int D>
class JacobiSolver : public Relaxation<T, D, JacobiRow<T, D>> {
 public:
  /// Collective in order.
  JacobiSolver(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth, Exchange exchange)
      : Relaxation<T, D, JacobiRow<T, D>>(
            domain, equation, depth, exchange, [&](const Index<D>& stride, const PoissonSystem<T, D>& system) {
              return JacobiRow<T, D>(system.laplacian(stride), system.source(), static_cast<T>(equation.omega),
                                     static_cast<T>(equation.diagonal()));
            }) {}
};

}  // namespace isohalo
