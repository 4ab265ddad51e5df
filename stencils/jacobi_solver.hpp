#pragma once
/// poisson, method = "jacobi": damped Jacobi steps, as deep as the halo allows.

#include "stencils/relaxation.hpp"

namespace isohalo {

template <class T, int D>
JacobiPoint<T, D> jacobi_point(const Laplacian<T, D>& laplacian, const PoissonEquation<D>& equation) {
  return {laplacian, static_cast<T>(equation.omega), static_cast<T>(equation.diagonal())};
}

template <class T, int D>
class JacobiSolver : public Relaxation<T, D> {
 public:
  /// Collective in order.
  JacobiSolver(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth, Exchange exchange)
      : Relaxation<T, D>(domain, equation, depth, exchange,
                         [&](const Index<D>& stride, const PoissonSystem<T, D>& system) {
                           return PointRow<T, D, JacobiPoint>(jacobi_point<T>(system.laplacian(stride), equation),
                                                              system.source());
                         }) {}

  void try_depths(const std::vector<int>& depths) override { this->stepper_.try_depths(depths); }

  /// All steps that need no mean at once, so that the stepper may take several together.
  double advance(std::int64_t steps, bool change) override {
    if (!this->system_.singular()) return this->stepper_.advance(steps, change);
    return Relaxation<T, D>::advance(steps, change);
  }
};

}  // namespace isohalo
