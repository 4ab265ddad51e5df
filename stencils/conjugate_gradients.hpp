#pragma once
/// poisson, method = "cg": conjugate gradients in textbook order.

#include <algorithm>
#include <array>
#include <utility>

#include "stencils/poisson_system.hpp"

namespace isohalo {

/// The method, wherever its vectors are. Fields `u`, and `r`, `p` that a restart needs: none of them can be had
/// from the others with the same bits. One halo exchange and two reductions a step; deeper halos are of no use.
/// When the equation is singular each step ends with u = u - mean(u), which is put off until somebody looks at u or
/// the next step updates it.
///
/// A p is never stored: a sum of products needs it once and the descent once, and to form it again costs less than
/// to write and to read it.
template <class T, int D>
class ConjugateGradients : public Solver<D> {
 public:
  /// Where they are computed elsewhere these are copies, as the fields are now; what is changed there counts from
  /// `start` or `fields_changed` on.
  std::vector<FieldHandle<D>> fields() override {
    if (system_.singular()) shift(std::exchange(mean_, T(0)));  // of -0, too: it makes +0 of -0
    const auto [u, r, p] = on_host();
    return {{"u", "1", "state", u}, {"r", "1", "auxiliary", r}, {"p", "1", "auxiliary", p}};
  }
  std::optional<FieldHandle<D>> source() override {
    return FieldHandle<D>{"f", "1", "auxiliary", system_.source()};
  }
  Index<D> tile() const override { return default_tile<D>(); }
  ExchangeChoice exchange() const override { return plan_.choice(); }
  void reduce_by(const ReductionOptions& options) override { system_.reduce_by(options); }
  void time_phases(PhaseClock* clock) override { system_.time_phases(clock); }
  /// r = f + lap(u) with the true outside values, and p = r: once, so on the host.
  void start() override {
    system_.start();
    const auto [u, r, p] = on_host();
    copy(u, p);
    place_outside(p, rules_);
    rr_ = system_.residual_square(p, &r);
    copy(r, p);
    take_from_host();
    curvature_ = curvature();
  }
  /// (r, r) of a restored r has the bits that it had before, (p, A p) too.
  void fields_changed() override {
    take_from_host();
    const ArrayRef<T, D> r = on_host()[1];
    rr_ = system_.sum("isohalo::rr", [&](const Index<D>& i, std::int64_t) {
      const T* const row = &r.at(i);
      return [row](std::int64_t x) { return static_cast<double>(row[x]) * static_cast<double>(row[x]); };
    });
    curvature_ = curvature();
  }
  /// The change sum of this method is (r, r).
  double advance(std::int64_t steps, bool) override {
    for (std::int64_t s = 0; s < steps; ++s) step();
    return rr_;
  }
  StopTest stop_test(double limit, double) override { return system_.stop_test(limit, rr_); }
  std::string residual_of() const override {
    return "r, as the method carries it along: f + laplace(u) but for rounding";
  }

 protected:
  /// Ghosts of p by this plan. Collective in order.
  ConjugateGradients(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, Exchange exchange,
                     const Workers& workers)
      : domain_(domain),
        rules_(equation.grid.boundary),
        system_(domain, equation, 1, exchange),
        plan_(domain, StencilShape<D>::star(1), 1,
              HaloOptions<D>{rules_.mirror_low(), rules_.mirror_high(), exchange, workers}),
        rows_({domain.owned()}) {}

  /// u, r and p, as they are now, in memory of the host.
  virtual std::array<ArrayRef<T, D>, 3> on_host() = 0;
  /// They count as they are there now. Collective, as all of these.
  virtual void take_from_host() {}
  /// (p, A p), A p = -lap(p) with outside values of zero.
  virtual double curvature() = 0;
  /// u = (u - shift) + alpha p and r = r - alpha A p; returns (r, r). A u that is not finite makes that NaN (0 u),
  /// otherwise the addition of zero does not change its bits, as shift = 0 does not change u's. Of singular
  /// systems `sum_of_u` is that of the new u.
  virtual double descend(T alpha, T shift, double& sum_of_u) = 0;
  /// p = r + beta p; returns (p, A p).
  virtual double turn(T beta) = 0;
  /// u = u - by.
  virtual void shift(T by) = 0;

  /// The ghosts of a vector that is on the host, and its outside cells.
  void place_outside(const ArrayRef<T, D>& v, const BoundaryRules<D>& rules) {
    {
      const PhaseScope scope(system_.phases(), Phase::exchange);
      plan_.exchange(v);
    }
    system_.place_outside(v, rules);
  }

  CartesianDomain<D> domain_;
  BoundaryRules<D> rules_;
  PoissonSystem<T, D> system_;
  HaloPlan<D> plan_;
  SweepRegion<D> rows_;

 private:
  void copy(const ArrayRef<T, D>& from, const ArrayRef<T, D>& to) const {
    const PhaseScope scope(system_.phases(), Phase::sweep);
    for_each_row_of("isohalo::rows", rows_,
                    [&](const Index<D>& i, std::int64_t n) { std::copy_n(&from.at(i), n, &to.at(i)); });
  }
  void step() {
    // A residual of exactly zero leaves everything as it is.
    const T alpha = static_cast<T>(curvature_ != 0 ? rr_ / curvature_ : 0);
    double sum_of_u = 0;
    const double rr = descend(alpha, mean_, sum_of_u);
    mean_ = static_cast<T>(sum_of_u / static_cast<double>(domain_.global().cells()));
    curvature_ = turn(static_cast<T>(rr_ != 0 ? rr / rr_ : 0));
    rr_ = rr;
  }

  double rr_ = 0, curvature_ = 0;  ///< (r, r) and (p, A p)
  T mean_ = 0;                     ///< of u, which is still to be taken from it
};

namespace detail {

// What the method does to a cell, k elements behind those that the pointers say; for rows of the host and for
// devices.

/// A p = -lap(p).
template <class T, int D>
struct OperatorAt {
  Laplacian<T, D> laplacian;
  const T* p;
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return laplacian.stride(j); }
  KOKKOS_FUNCTION T value(std::int64_t k) const { return -laplacian(p + k); }
  KOKKOS_FUNCTION double product(std::int64_t k) const {
    return static_cast<double>(p[k]) * static_cast<double>(value(k));
  }
};
/// u = (u - shift) + alpha p and r = r - alpha A p, and (r, r) of what is stored, NaN where u is not finite.
template <class T, int D>
struct DescentAt {
  T alpha, shift;
  OperatorAt<T, D> a;
  T *u, *r;
  struct Values {
    T u, r;
  };
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return a.stride(j); }
  KOKKOS_FUNCTION Values values(std::int64_t k) const {
    return {(u[k] - shift) + alpha * a.p[k], r[k] - alpha * a.value(k)};
  }
  KOKKOS_FUNCTION double term(std::int64_t, const Values& v) const {
    return static_cast<double>(v.r) * static_cast<double>(v.r) + 0 * static_cast<double>(v.u);
  }
  KOKKOS_FUNCTION void store(std::int64_t k, const Values& v) const { u[k] = v.u, r[k] = v.r; }
};
/// p = r + beta p.
template <class T>
struct TurnAt {
  T beta;
  const T* r;
  T* p;
  using Values = T;
  KOKKOS_FUNCTION T values(std::int64_t k) const { return r[k] + beta * p[k]; }
  KOKKOS_FUNCTION void store(std::int64_t k, T v) const { p[k] = v; }
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { store(k, values(k)); }
};

}  // namespace detail

}  // namespace isohalo
