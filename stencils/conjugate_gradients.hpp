#pragma once
/// poisson, method = "cg": conjugate gradients in textbook order.

#include <chrono>
#include <memory>

#include "framework/schedule/fastest_way.hpp"
#include "stencils/poisson_system.hpp"

namespace isohalo {

/// Fields `u`, and `r`, `p` that a restart needs: none of them can be had from the others with the same bits. One
/// halo exchange and two reductions a step; deeper halos are of no use. When the equation is singular each step
/// ends with u = u - mean(u), which nothing else reads.
template <class T, int D>
class ConjugateGradients : public Solver<D> {
 public:
  /// Collective in order.
  ConjugateGradients(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, Exchange exchange)
      : domain_(domain),
        rules_(equation.grid.boundary),
        system_(domain, equation, 1, exchange),
        plan_(domain, StencilShape<D>::star(1), 1,
              HaloOptions<D>{rules_.mirror_low(), rules_.mirror_high(), exchange, {}, {}, host_workers()}),
        u_("u", domain.owned(), {}, {}),
        r_("r", domain.owned(), {}, {}),
        p_("p", domain.owned(), plan_.ghost_low(), plan_.ghost_high(), field_memory(exchange, domain.comm())),
        ap_("A p", domain.owned(), {}, {}),
        rows_({domain.owned()}) {
    homogeneous_ = rules_.homogeneous();
  }

  std::vector<FieldHandle<D>> fields() override {
    return {{"u", "1", "state", u_.ref()}, {"r", "1", "auxiliary", r_.ref()}, {"p", "1", "auxiliary", p_.ref()}};
  }
  std::optional<FieldHandle<D>> source() override {
    return FieldHandle<D>{"f", "1", "auxiliary", system_.source()};
  }
  Index<D> tile() const override { return default_tile<D>(); }
  ExchangeChoice exchange() const override { return plan_.choice(); }
  void reduce_by(const ReductionOptions& options) override { system_.reduce_by(options); }
  void time_phases(PhaseClock* clock) override { system_.time_phases(clock); }

  /// r = f + lap(u) with the true outside values, p = r.
  void start() override {
    system_.start();
    for_each_owned([](T* p, T*, const T* u, std::int64_t n) { std::copy_n(u, n, p); });
    place_outside(rules_);
    const ArrayRef<T, D> r = r_.ref();
    rr_ = system_.residual_square(p_.ref(), &r);
    for_each_owned([](T* p, T* r_row, const T*, std::int64_t n) { std::copy_n(r_row, n, p); });
  }
  /// (r, r) of a restored r has the bits that it had before.
  void fields_changed() override {
    rr_ = system_.sum("isohalo::rr", [&](const Index<D>& i, std::int64_t) {
      const T* const r = &r_.at(i);
      return [r](std::int64_t x) { return static_cast<double>(r[x]) * static_cast<double>(r[x]); };
    });
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

 private:
  void step() {
    place_outside(homogeneous_);
    const auto start = std::chrono::steady_clock::now();
    const double curvature = apply();
    // A residual of exactly zero leaves everything as it is.
    const double alpha = curvature != 0 ? rr_ / curvature : 0;
    const double rr_new = descend(static_cast<T>(alpha));
    const T beta = static_cast<T>(rr_ != 0 ? rr_new / rr_ : 0);
    rr_ = rr_new;
    for_each_owned([beta](T* p, T* r, const T*, std::int64_t n) {
      for (std::int64_t x = 0; x < n; ++x) p[x] = r[x] + beta * p[x];
    });
    fetches_.took(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (system_.singular()) remove_mean();
  }

  /// A p = -lap(p) and (p, A p).
  double apply() {
    const Laplacian<T, D> lap = system_.laplacian(p_.ref().stride);
    const bool fetches = fetches_.way() == 1;
    const std::int64_t lead = D > 1 ? p_.ref().stride[0] : 0;
    return system_.sum("isohalo::apply", [&](const Index<D>& i, std::int64_t, const Index<D>& later) {
      const T *const p = &p_.at(i), *const p_later = &p_.at(later) + lead;
      T *const ap = &ap_.at(i), *const ap_later = &ap_.at(later);
      return UpdatedRow(
          fetches,
          [=](std::int64_t x, std::int64_t n) {
            for (std::int64_t k = x; fetches && k < x + n; k += kLine) {
              detail::fetch_to_read(p_later + k);
              detail::fetch_to_write(ap_later + k);
            }
            ISOHALO_INDEPENDENT
            for (std::int64_t k = x; k < x + n; ++k) ap[k] = -lap(p + k);
          },
          [=](std::int64_t x) { return static_cast<double>(p[x]) * static_cast<double>(ap[x]); });
    });
  }

  /// u = u + alpha p, r = r - alpha A p; returns (r, r). A u that is not finite makes it NaN (0 u), otherwise the
  /// addition of zero does not change its bits.
  double descend(T alpha) {
    const bool fetches = fetches_.way() == 1;
    return system_.sum("isohalo::update", [&](const Index<D>& i, std::int64_t, const Index<D>& later) {
      T *const u = &u_.at(i), *const r = &r_.at(i);
      const T *const p = &p_.at(i), *const ap = &ap_.at(i);
      const T *const u_later = &u_.at(later), *const r_later = &r_.at(later);
      const T *const p_later = &p_.at(later), *const ap_later = &ap_.at(later);
      return UpdatedRow(
          fetches,
          [=](std::int64_t x, std::int64_t n) {
            for (std::int64_t k = x; fetches && k < x + n; k += kLine) {
              detail::fetch_to_write(u_later + k);
              detail::fetch_to_write(r_later + k);
              detail::fetch_to_read(p_later + k);
              detail::fetch_to_read(ap_later + k);
            }
            ISOHALO_INDEPENDENT
            for (std::int64_t k = x; k < x + n; ++k) {
              u[k] = u[k] + alpha * p[k];
              r[k] = r[k] - alpha * ap[k];
            }
          },
          [=](std::int64_t x) {
            return static_cast<double>(r[x]) * static_cast<double>(r[x]) + 0 * static_cast<double>(u[x]);
          });
    });
  }

  void remove_mean() {
    const T mean = static_cast<T>(system_.mean(u_.ref()));
    const ArrayRef<T, D> u = u_.ref();
    for_each_owned_row([=](const Index<D>& i, std::int64_t n) {
      T* const row = &u.at(i);
      for (std::int64_t x = 0; x < n; ++x) row[x] = row[x] - mean;
    });
  }

  /// The ghosts of p and its outside cells.
  void place_outside(const BoundaryRules<D>& rules) {
    {
      const PhaseScope scope(system_.phases(), Phase::exchange);
      plan_.exchange(p_.ref());
    }
    system_.place_outside(p_.ref(), rules);
  }

  template <class F>
  void for_each_owned_row(const F& f) {
    const PhaseScope scope(system_.phases(), Phase::sweep);
    for_each_row_of("isohalo::rows", rows_, f);
  }
  /// f(p, r, u, n) for every row of owned cells.
  template <class F>
  void for_each_owned(const F& f) {
    for_each_owned_row([&](const Index<D>& i, std::int64_t n) { f(&p_.at(i), &r_.at(i), &u_.at(i), n); });
  }

  CartesianDomain<D> domain_;
  BoundaryRules<D> rules_, homogeneous_;
  PoissonSystem<T, D> system_;
  HaloPlan<D> plan_;
  Field<T, D> u_, r_, p_, ap_;
  SweepRegion<D> rows_;
  double rr_ = 0;
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  FastestWay fetches_ = FastestWay::of(2);  ///< see Fetch
};

}  // namespace isohalo
