#pragma once
/// poisson, method = "jacobi": damped Jacobi steps, as deep as the halo allows.

#include <memory>

#include "stencils/deep_stepper.hpp"
#include "stencils/poisson_system.hpp"

namespace isohalo {

/// One field, `u`. When the equation is singular each step ends with u = u - mean(u).
template <class T, int D>
class JacobiSolver : public Solver<D> {
 public:
  /// Collective in order.
  JacobiSolver(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth, Exchange exchange)
      : system_(domain, equation, depth, exchange),
        stepper_(
            "u", domain, StencilShape<D>::star(1), equation.grid.boundary, depth,
            [&](const Index<D>& stride) {
              return JacobiRow<T, D>(system_.laplacian(stride), system_.source(), static_cast<T>(equation.omega),
                                     static_cast<T>(equation.diagonal()));
            },
            exchange) {}

  std::vector<FieldHandle<D>> fields() override { return stepper_.fields(); }
  std::optional<FieldHandle<D>> source() override {
    return FieldHandle<D>{"f", "1", "auxiliary", system_.source()};
  }
  void start() override {
    system_.start();
    fields_changed();
  }
  void fields_changed() override { stepper_.fields_changed(); }
  Index<D> tile() const override { return stepper_.tile(); }
  ExchangeChoice exchange() const override { return stepper_.exchange(); }
  void reduce_by(const ReductionOptions& options) override {
    system_.reduce_by(options);
    stepper_.reduce_by(options);
  }
  void time_phases(PhaseClock* clock) override {
    system_.time_phases(clock);
    stepper_.time_phases(clock);
  }

  double advance(std::int64_t steps, bool change) override {
    if (!system_.singular()) return stepper_.advance(steps, change);
    for (std::int64_t s = 0; s < steps; ++s) {
      stepper_.advance(1, false);
      const T mean = static_cast<T>(system_.mean(stepper_.field()));
      stepper_.change_all([mean](T u) { return u - mean; });
    }
    return change ? change_of_last_step() : 0;
  }

  /// Of the state as it is, so that a restarted run stops where the first one did.
  StopTest stop_test(double limit, double) override {
    return system_.stop_test(limit, system_.residual_square(stepper_.ready()));
  }

 private:
  double change_of_last_step() {
    return system_.sum("isohalo::change", [&](const Index<D>& i, std::int64_t) {
      const T *const after = &stepper_.field().at(i), *const before = &stepper_.previous().at(i);
      return [=](std::int64_t x) {
        const double change = static_cast<double>(after[x]) - static_cast<double>(before[x]);
        return change * change;
      };
    });
  }

  PoissonSystem<T, D> system_;
  DeepStepper<T, D, JacobiRow<T, D>> stepper_;
};

}  // namespace isohalo
