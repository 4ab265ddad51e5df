#pragma once
/// poisson by sweeps over the grid: what jacobi, red_black and chebyshev have in common.

#include <memory>

#include "stencils/poisson_system.hpp"
#include "stencils/state_stepper.hpp"

namespace isohalo {

/// One state field, `u`. When the equation is singular each step ends with u = u - mean(u). A method says what a
/// step is.
template <class T, int D>
class Relaxation : public Solver<D> {
 public:
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
  int depth() const override { return stepper_.depth(); }
  void sweep_by(const SweepSettings<D>& settings) override { stepper_.sweep_by(settings); }
  std::string sweeps() const override { return stepper_.sweeps(); }
  void time_phases(PhaseClock* clock) override {
    system_.time_phases(clock);
    stepper_.time_phases(clock);
  }
  double advance(std::int64_t steps, bool change) override {
    double sum = 0;
    for (std::int64_t s = 1; s <= steps; ++s) sum = step(change && s == steps);
    return sum;
  }
  /// Of the state as it is, so that a restarted run stops where the first one did.
  StopTest stop_test(double limit, double) override {
    return system_.stop_test(limit, system_.residual_square(stepper_.ready()));
  }

 protected:
  /// `sweeps` of the kernel, or kernels in turns, that make_row(stride, system) makes follow an exchange.
  /// Collective in order.
  template <class MakeRow>
  Relaxation(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int sweeps, Exchange exchange,
             const MakeRow& make_row)
      : system_(domain, equation, sweeps, exchange),
        stepper_(
            "u", domain, StencilShape<D>::star(1), equation.grid.boundary, sweeps,
            [&](const Index<D>& stride) { return make_row(stride, system_); }, exchange) {}

  /// One step; with `change` its change sum.
  virtual double step(bool change) { return step_of_one_sweep(change); }

  double step_of_one_sweep(bool change) {
    if (!system_.singular()) return stepper_.advance(1, change);
    stepper_.advance(1, false);
    remove_mean();
    return change ? system_.change_square(stepper_.previous(), stepper_.field()) : 0;
  }
  void remove_mean() {
    const T mean = static_cast<T>(system_.mean(stepper_.field()));
    stepper_.change_all([mean](T u) { return u - mean; });
  }

  PoissonSystem<T, D> system_;
  StateStepper<T, D> stepper_;
};

}  // namespace isohalo
