#pragma once
/// poisson, method = "cg": conjugate gradients in textbook order.

#include <algorithm>
#include <array>
#include <memory>

#include "datatypes/independent.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "framework/schedule/stopwatch.hpp"
#include "stencils/kernel_sweep.hpp"
#include "stencils/poisson_system.hpp"

namespace isohalo {

/// The method, wherever its vectors are. Fields `u`, and `r`, `p` that a restart needs: none of them can be had
/// from the others with the same bits. One halo exchange and two reductions a step; deeper halos are of no use.
/// When the equation is singular each step ends with u = u - mean(u), which nothing else reads.
template <class T, int D>
class ConjugateGradients : public Solver<D> {
 public:
  /// Where they are computed elsewhere these are copies, as the fields are now; what is changed there counts from
  /// `start` or `fields_changed` on.
  std::vector<FieldHandle<D>> fields() override {
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
  }
  /// (r, r) of a restored r has the bits that it had before.
  void fields_changed() override {
    take_from_host();
    const ArrayRef<T, D> r = on_host()[1];
    rr_ = system_.sum("isohalo::rr", [&](const Index<D>& i, std::int64_t) {
      const T* const row = &r.at(i);
      return [row](std::int64_t x) { return static_cast<double>(row[x]) * static_cast<double>(row[x]); };
    });
  }
  /// The change sum of this method is (r, r).
  double advance(std::int64_t steps, bool change) override {
    for (std::int64_t s = 1; s <= steps; ++s) step(change && s == steps);
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
  /// A p = -lap(p) with outside values of zero; returns (p, A p).
  virtual double apply() = 0;
  /// r = r - alpha A p; returns (r, r).
  virtual double descend(T alpha) = 0;
  /// And u = u + alpha p. A u that is not finite makes (r, r) NaN (0 u), otherwise the addition of zero does not
  /// change its bits.
  virtual double descend_with_u(T alpha) = 0;
  /// p = r + beta p.
  virtual void turn(T beta) = 0;
  /// u = u + alpha p before.
  virtual void turn_with_u(T beta, T alpha) = 0;
  /// u = u - mean(u).
  virtual void remove_mean() = 0;

  /// The ghosts of p, which is on the host, and its outside cells.
  void place_outside(const ArrayRef<T, D>& p, const BoundaryRules<D>& rules) {
    {
      const PhaseScope scope(system_.phases(), Phase::exchange);
      plan_.exchange(p);
    }
    system_.place_outside(p, rules);
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
  /// Where (r, r) is `shown` u is looked at. In other steps u goes with the pass that reads p anyway,
  /// so that p is read once less.
  void step(bool shown) {
    const double curvature = apply();
    // A residual of exactly zero leaves everything as it is.
    const T alpha = static_cast<T>(curvature != 0 ? rr_ / curvature : 0);
    const double rr_new = shown ? descend_with_u(alpha) : descend(alpha);
    const T beta = static_cast<T>(rr_ != 0 ? rr_new / rr_ : 0);
    rr_ = rr_new;
    shown ? turn(beta) : turn_with_u(beta, alpha);
    if (system_.singular()) remove_mean();
  }

  double rr_ = 0;
};

namespace detail {

// What the method does to a cell, k elements behind those that the pointers say; for rows of the host and for
// devices.

/// out = -lap(u).
template <class T, int D>
struct OperatorAt {
  Laplacian<T, D> laplacian;
  const T* u;
  T* out;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { out[k] = value(k); }
  KOKKOS_FUNCTION T value(std::int64_t k) const { return -laplacian(u + k); }
};
/// r = r - alpha A p.
template <class T>
struct DescentAt {
  T alpha;
  const T* ap;
  T* r;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { r[k] = new_r(k); }
  KOKKOS_FUNCTION T new_r(std::int64_t k) const { return r[k] - alpha * ap[k]; }
};
/// u = u + alpha p.
template <class T>
struct AdvanceAt {
  T alpha;
  const T* p;
  T* u;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { u[k] = new_u(k); }
  KOKKOS_FUNCTION T new_u(std::int64_t k) const { return u[k] + alpha * p[k]; }
};
/// p = r + beta p.
template <class T>
struct TurnAt {
  T beta;
  const T* r;
  T* p;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { p[k] = r[k] + beta * p[k]; }
};
template <class First, class Second>
struct BothAt {
  First first;
  Second second;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    first(k);
    second(k);
  }
};
template <class First, class Second>
BothAt(First, Second) -> BothAt<First, Second>;  // clang 14 has none of its own

/// A row of cells, each by make(in, at, out, to)(x): see RowKernel.
template <class T, int D, class Make>
class RowOfCells final : public RowKernel<T, D> {
 public:
  RowOfCells(const Make& make, bool in_place) : make_(make), in_place_(in_place) {}
  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>&) const override {
    const auto update = make_(in, at, out, to);
    for (std::int64_t k = 0, row = 0; k < rows.count; ++k, row += rows.apart) {
      ISOHALO_INDEPENDENT
      for (std::int64_t x = row; x < row + rows.cells; ++x) update(x);
    }
  }
  bool reads_what_it_writes() const override { return in_place_; }

 private:
  Make make_;
  bool in_place_;
};
template <class T, int D, class Make>
RowOfCells<T, D, Make> row_of_cells(bool in_place, const Make& make) {
  return {make, in_place};
}

}  // namespace detail

/// The vectors in rows of the host.
template <class T, int D>
class HostConjugateGradients final : public ConjugateGradients<T, D> {
 public:
  /// Collective in order.
  HostConjugateGradients(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, Exchange exchange)
      : ConjugateGradients<T, D>(domain, equation, exchange, host_workers()),
        u_(made("u", FieldMemory::own)),
        r_(made("r", FieldMemory::own)),
        p_(made("p", field_memory(exchange, domain.comm()))),
        ap_(made("A p", FieldMemory::own)),
        homogeneous_(this->rules_.homogeneous()),
        lead_(D > 1 ? p_.ref().stride[0] : 0) {}

  void sweep_by(const SweepSettings<D>& settings) override {
    if (settings.way) ways_ = in_place_ = FastestWay::decided_for(*settings.way);
  }
  std::string sweeps() const override { return Fetch::text(ways_); }

 protected:
  std::array<ArrayRef<T, D>, 3> on_host() override { return {u_.ref(), r_.ref(), p_.ref()}; }

  double apply() override {
    this->place_outside(p_.ref(), homogeneous_);
    watch_ = detail::Stopwatch(!in_place_.decided());
    T *const p = p_.ref().data, *const ap = ap_.ref().data;
    const auto row = detail::row_of_cells<T, D>(
        false, [laplacian = system_.laplacian(p_.ref().stride)](auto in, auto at, auto out, auto to) {
          return detail::OperatorAt<T, D>{laplacian, in[0] + at, out[0] + to};
        });
    return system_.sum_by([&](CellSum<D>& sum, std::vector<double>& scratch) {
      const Fetch how = Fetch::by_way(ways_.way(), lead_);
      sweep_with_product<T, D>(sum, scratch, {row, p_.ref(), {&p, 1}, {&ap, 1}}, p, how);
    });
  }
  double descend(T alpha) override {
    const auto row = detail::row_of_cells<T, D>(true, [alpha](auto in, auto at, auto out, auto to) {
      return detail::DescentAt<T>{alpha, in[0] + at, out[0] + to};
    });
    T *const ap = ap_.ref().data, *const r = r_.ref().data;
    return square_of({row, p_.ref(), {&ap, 1}, {&r, 1}});
  }
  double descend_with_u(T alpha) override {
    const auto row = detail::row_of_cells<T, D>(true, [alpha](auto in, auto at, auto out, auto to) {
      return detail::BothAt{detail::AdvanceAt<T>{alpha, in[0] + at, out[1] + to},
                            detail::DescentAt<T>{alpha, in[1] + at, out[0] + to}};
    });
    T *const in[] = {p_.ref().data, ap_.ref().data}, *const out[] = {r_.ref().data, u_.ref().data};
    return square_of({row, p_.ref(), in, out});
  }
  void turn(T beta) override {
    const auto row = detail::row_of_cells<T, D>(true, [beta](auto in, auto at, auto out, auto to) {
      return detail::TurnAt<T>{beta, in[0] + at, out[0] + to};
    });
    T *const r = r_.ref().data, *const p = p_.ref().data;
    end_step({row, p_.ref(), {&r, 1}, {&p, 1}});
  }
  void turn_with_u(T beta, T alpha) override {
    const auto row = detail::row_of_cells<T, D>(true, [beta, alpha](auto in, auto at, auto out, auto to) {
      return detail::BothAt{detail::AdvanceAt<T>{alpha, out[0] + to, out[1] + to},
                            detail::TurnAt<T>{beta, in[0] + at, out[0] + to}};
    });
    T *const r = r_.ref().data, *const out[] = {p_.ref().data, u_.ref().data};
    end_step({row, p_.ref(), {&r, 1}, out});
  }
  void remove_mean() override {
    const T mean = static_cast<T>(system_.mean(u_.ref()));
    const PhaseScope scope(system_.phases(), Phase::sweep);
    for_each_row_of("isohalo::rows", this->rows_, [=, this](const Index<D>& i, std::int64_t n) {
      T* const row = &u_.at(i);
      for (std::int64_t x = 0; x < n; ++x) row[x] = row[x] - mean;
    });
  }

 private:
  using ConjugateGradients<T, D>::system_;
  using ConjugateGradients<T, D>::plan_;

  /// All with the ghosts of p, so that a cell lies at the same place in each.
  Field<T, D> made(const char* name, FieldMemory memory) const {
    return Field<T, D>(name, this->domain_.owned(), plan_.ghost_low(), plan_.ghost_high(), memory);
  }
  double square_of(const RowUpdate<T, D>& update) {
    return system_.sum_by([&](CellSum<D>& sum, std::vector<double>& scratch) {
      sweep_with_square<T, D>(sum, scratch, update, in_place());
    });
  }
  void end_step(const RowUpdate<T, D>& update) {
    {
      const PhaseScope scope(system_.phases(), Phase::sweep);
      sweep<T, D>(this->rows_, update, in_place());
    }
    FastestWay& tried = ways_.decided() ? in_place_ : ways_;
    if (tried.decided()) return;
    const PhaseScope scope(system_.phases(), Phase::exchange);  // at the end of a trial ranks wait for each other
    tried.took(watch_.seconds(), &this->domain_.comm());
  }
  Fetch in_place() const { return Fetch::by_way(in_place_.way(), 0); }

  Field<T, D> u_, r_, p_, ap_;
  BoundaryRules<D> homogeneous_;
  std::int64_t lead_;                               ///< see Fetch
  FastestWay ways_ = FastestWay::of(Fetch::kWays);  ///< of A p
  FastestWay in_place_ = FastestWay::of(2);         ///< then of the other passes: plain, or fetching
  detail::Stopwatch watch_;
};

}  // namespace isohalo
