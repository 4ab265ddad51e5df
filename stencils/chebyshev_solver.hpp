#pragma once
/// poisson, method = "chebyshev": Chebyshev's semi-iteration, whose steps need no sums over the grid.

#include <algorithm>

#include "stencils/relaxation.hpp"

namespace isohalo {

/// The factors of a step, in the field's type.
template <class T>
struct ChebyshevFactors {
  T change, residual;
};
template <class T>
ChebyshevFactors<T> next_factors(ChebyshevSteps& steps) {
  steps.next();
  return {static_cast<T>(steps.change()), static_cast<T>(steps.residual())};
}

/// u' = u + (a (u - v) + b r), v the field one step before, whose place u' takes (docs/model.md, "chebyshev"); from
/// u, v and f.
template <class T, int D>
struct ChebyshevPoint {
  Laplacian<T, D> laplacian;
  const ChebyshevFactors<T>* of_next;  ///< on the host: of the step to be made; they change while the kernel stays
  ChebyshevFactors<T> factors{};
  static constexpr std::size_t kReads = 3, kWrites = 1;
  ChebyshevPoint of_this_step() const { return {laplacian, of_next, *of_next}; }
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return laplacian.stride(j); }
  KOKKOS_FUNCTION std::array<T, 1> at(const std::array<const T*, 3>& from, std::int64_t x) const {
    const T* const u = from[0] + x;
    const T r = from[2][x] + laplacian(u);
    return {*u + (factors.change * (*u - from[1][x]) + factors.residual * r)};
  }
};

/// A restart needs the field one step before as well.
template <class T, int D>
class ChebyshevSolver : public Relaxation<T, D> {
 public:
  /// Collective in order.
  ChebyshevSolver(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth,
                  Exchange exchange)
      : Relaxation<T, D>(
            domain, equation, depth, exchange,
            [&](const Index<D>& stride, const PoissonSystem<T, D>& system) {
              return PointRow<T, D, ChebyshevPoint>({system.laplacian(stride), &factors_}, system.source());
            }),
        steps_(equation.lambda_low, equation.lambda_high) {
    this->stepper_.exchange_previous();
  }

  std::vector<FieldHandle<D>> fields() override {
    auto all = this->stepper_.fields();
    all.push_back({"u_previous", "1", "auxiliary", this->stepper_.previous()});
    return all;
  }
  /// The first step has no field before it: its own, which its factor of 0 then leaves no trace of.
  void start() override {
    const ArrayRef<T, D> u = this->stepper_.field(), previous = this->stepper_.previous();
    for_each_row_of("isohalo::chebyshev_start", SweepRegion<D>({u.owned}),
                    [=](const Index<D>& i, std::int64_t n) { std::copy_n(&u.at(i), n, &previous.at(i)); });
    Relaxation<T, D>::start();
  }
  void set_time(std::int64_t step, double) override { steps_.go_to(step); }

 protected:
  double step(bool change) override {
    factors_ = next_factors<T>(steps_);
    return this->step_of_one_sweep(change);
  }

 private:
  ChebyshevSteps steps_;
  ChebyshevFactors<T> factors_{};
};

}  // namespace isohalo
