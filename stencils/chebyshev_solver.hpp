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

/// u' = u + (a (u - v) + b r), v the field one step before (docs/model.md, "chebyshev"), at the cell whose address
/// is `u`.
template <class T, int D>
struct ChebyshevAt {
  Laplacian<T, D> laplacian;
  ChebyshevFactors<T> factors;
  KOKKOS_FUNCTION T operator()(const T* u, T v, T f) const {
    const T r = f + laplacian(u);
    return *u + (factors.change * (*u - v) + factors.residual * r);
  }
};

/// The new field takes the place of that one step before.
template <class T, int D>
class ChebyshevRow {
 public:
  static constexpr bool kReadsOut = true;
  /// `factors`: of the step to be made; they change while the kernel stays.
  ChebyshevRow(const Laplacian<T, D>& laplacian, const ArrayRef<T, D>& f, const ChebyshevFactors<T>* factors)
      : laplacian_(laplacian), f_(f), factors_(factors) {}

  void operator()(const T* in, T* __restrict out, std::int64_t n, const Index<D>& i) const {
    const ChebyshevAt<T, D> at{laplacian_, *factors_};
    const T* const f = &f_.at(i);
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) out[x] = at(in + x, out[x], f[x]);
  }
  const ArrayRef<T, D>& source() const { return f_; }

 private:
  Laplacian<T, D> laplacian_;
  ArrayRef<T, D> f_;
  const ChebyshevFactors<T>* factors_;
};

/// A restart needs the field one step before as well.
template <class T, int D>
class ChebyshevSolver : public Relaxation<T, D> {
 public:
  /// Collective in order.
  ChebyshevSolver(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth,
                  Exchange exchange)
      : Relaxation<T, D>(domain, equation, depth, exchange,
                         [&](const Index<D>& stride, const PoissonSystem<T, D>& system) {
                           return ChebyshevRow<T, D>(system.laplacian(stride), system.source(), &factors_);
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
