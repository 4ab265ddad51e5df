#pragma once
/// poisson, method = "cg", with vectors in memory of the host.

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>
#include <vector>

#include "datatypes/independent.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "framework/schedule/stopwatch.hpp"
#include "stencils/conjugate_gradients.hpp"
#include "stencils/kernel_sweep.hpp"
#include "stencils/row_kernels.hpp"

namespace isohalo {

namespace detail {

/// p = r + beta p, a row and a plane ahead of the rows of cells of which (p, A p) is formed: p is read there from
/// cache. These come band by band (TreeReducer::bands). Ghosts of p are turned as well, from those of r.
template <class T, int D>
class TurnAhead {
 public:
  static constexpr std::int64_t kPiece = 512 / sizeof(T);  ///< cells at a time: 8 cache lines

  TurnAhead(T beta, const ArrayRef<T, D>& r, const ArrayRef<T, D>& p)
      : turn_{beta, r.data, p.data}, owned_(p.owned), stride_(p.stride) {
    for (int j = 0; j + 1 < D; ++j) ahead_ += stride_[j];
  }

  /// Turns what the m cells from the x-th on read, of the row of n from cell i on, in which those before are done
  /// with; fetches what as many cells of the row from cell `later` on will ask for.
  void operator()(const Index<D>& i, std::int64_t n, std::int64_t x, std::int64_t m, const Index<D>& later) const {
    const std::int64_t to_come = place(later) + ahead_ + x;
    for (const T* array : {turn_.r, static_cast<const T*>(turn_.p)})
      for (std::int64_t k = 0; k < m; k += kLine) fetch_to_write(array + to_come + k);
    // A line more than these cells: neighbors of theirs in the row may be among what is turned now.
    const std::int64_t low = x > 0 ? std::min(x + kLine, n) : i[D - 1] == owned_.low[D - 1] ? -1 : 1;
    const std::int64_t high = x + m < n ? std::min(x + m + kLine, n) : n + 1;
    Box<D> rows = Box<D>::of_cell(i);
    for (int j = 0; j + 1 < D; ++j) {
      rows.low[j] += i[j] == owned_.low[j] ? -1 : 1;
      rows.high[j] += 1;
    }
    for_each_cell(rows, [&](const Index<D>& k) { turn_row(k, low, high); });
  }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(T);

  std::int64_t place(const Index<D>& i) const { return offset_of<D>(i, owned_.low, stride_); }
  /// Cells low .. high-1 of the row, counted from cell i; beside the block only those that a star reaches.
  void turn_row(const Index<D>& i, std::int64_t low, std::int64_t high) const {
    int outside = 0;
    for (int j = 0; j + 1 < D; ++j) outside += i[j] < owned_.low[j] || i[j] >= owned_.high[j];
    if (outside > 1) return;
    const std::int64_t at = place(i), end = owned_.high[D - 1] - i[D - 1];
    if (outside == 0 && low < 0) turn_(at - 1);
    if (outside == 0 && high > end) turn_(at + end);
    low = std::max<std::int64_t>(low, 0), high = std::min(high, end);
    ISOHALO_INDEPENDENT
    for (std::int64_t k = at + low; k < at + high; ++k) turn_(k);
  }

  TurnAt<T> turn_;
  Box<D> owned_;
  Index<D> stride_;
  std::int64_t ahead_ = 0;
};

/// Terms of a row where p is turned ahead, a few cells at a time.
template <class T, int D, class Terms>
class TurnedTerms {
 public:
  /// Of the row of n cells from cell i on, as RowTerms.
  TurnedTerms(const Terms& terms_of, const TurnAhead<T, D>& turn, const Index<D>& i, std::int64_t n,
              const Index<D>& later)
      : row_(terms_of, i), turn_(turn), i_(behind<D>(i, 0)), later_(behind<D>(later, 0)), n_(n) {}
  static std::int64_t piece(std::int64_t) { return TurnAhead<T, D>::kPiece; }
  auto update(std::int64_t x, std::int64_t m) {
    turn_(i_, n_, x, m, later_);
    return row_.update(x, m);
  }

 private:
  RowTerms<D, Terms> row_;
  const TurnAhead<T, D>& turn_;
  Index<D> i_, later_;
  std::int64_t n_;
};

}  // namespace detail

/// The vectors in rows of the host.
template <class T, int D>
class HostConjugateGradients final : public ConjugateGradients<T, D> {
 public:
  /// Collective in order.
  HostConjugateGradients(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, Exchange exchange)
      : ConjugateGradients<T, D>(domain, equation, exchange, host_workers()),
        u_(made("u", FieldMemory::own)),
        r_(made("r", field_memory(exchange, domain.comm()))),
        p_(made("p", field_memory(exchange, domain.comm()))),
        homogeneous_(this->rules_.homogeneous()),
        may_turn_ahead_(linear_in_every_bit(homogeneous_) && domain.comm().max(host_threads()) == 1),
        lead_(D > 1 ? p_.ref().stride[0] : 0) {
    if (system_.singular()) sum_of_u_ = std::make_unique<CellSum<D>>(domain);
  }

  void reduce_by(const ReductionOptions& options) override {
    ConjugateGradients<T, D>::reduce_by(options);
    if (sum_of_u_) sum_of_u_->reduce_by(options);
  }

  void sweep_by(const SweepSettings<D>& settings) override {
    if (settings.way) ways_ = FastestWay::decided_for(*settings.way);
  }
  std::string sweeps() const override { return Fetch::text(ways_); }

 protected:
  std::array<ArrayRef<T, D>, 3> on_host() override { return {u_.ref(), r_.ref(), p_.ref()}; }

  double curvature() override {
    this->place_outside(p_.ref(), homogeneous_);
    return system_.sum_of_terms("isohalo::dot", products());
  }
  double descend(T alpha, T shift, double& sum_of_u) override {
    watch_ = detail::Stopwatch(!ways_.decided());
    T *const p = p_.ref().data, *const out[] = {r_.ref().data, u_.ref().data};
    const detail::RowsInPlace<T, D, detail::DescentAt<T, D>> row({alpha, shift, {laplacian(), p}, out[1], out[0]});
    return system_.sums_by(sum_of_u_.get(), &sum_of_u, [&](CellSum<D>& sum, std::vector<double>& scratch) {
      sweep_with_square<T, D>(sum, sum_of_u_.get(), scratch, {row, p_.ref(), {&p, 1}, out}, how());
    });
  }
  double turn(T beta) override {
    const double product = may_turn_ahead_ && how().ahead ? turn_ahead(beta) : (turn_all(beta), curvature());
    if (ways_.decided()) return product;
    const PhaseScope scope(system_.phases(), Phase::exchange);  // at the end of a trial ranks wait for each other
    ways_.took(watch_.seconds(), &this->domain_.comm());
    return product;
  }
  void shift(T by) override {
    const PhaseScope scope(system_.phases(), Phase::sweep);
    for_each_row_of("isohalo::rows", this->rows_, [=, this](const Index<D>& i, std::int64_t n) {
      T* const row = &u_.at(i);
      for (std::int64_t x = 0; x < n; ++x) row[x] = row[x] - by;
    });
  }

 private:
  using ConjugateGradients<T, D>::system_;
  using ConjugateGradients<T, D>::plan_;

  /// All with the ghosts of p, so that a cell lies at the same place in each.
  Field<T, D> made(const char* name, FieldMemory memory) const {
    return Field<T, D>(name, this->domain_.owned(), plan_.ghost_low(), plan_.ghost_high(), memory);
  }
  Laplacian<T, D> laplacian() const { return system_.laplacian(p_.ref().stride); }
  Fetch how() const { return Fetch::by_way(ways_.way(), lead_); }

  /// (p, A p) as terms of a sum (see RowTerms).
  auto products() const {
    return [this, laplacian = laplacian()](const Index<D>& i) {
      return [a = detail::OperatorAt<T, D>{laplacian, &p_.at(i)}](std::int64_t x) { return a.product(x); };
    };
  }
  /// The ghosts and outside cells of r instead of those of p, which are turned like the cells inside.
  double turn_ahead(T beta) {
    this->place_outside(r_.ref(), homogeneous_);
    const detail::TurnAhead<T, D> turn(beta, r_.ref(), p_.ref());
    const auto terms_of = products();
    return system_.sum("isohalo::dot", [&](const Index<D>& i, std::int64_t n, const Index<D>& later) {
      return detail::TurnedTerms<T, D, std::remove_const_t<decltype(terms_of)>>(terms_of, turn, i, n, later);
    });
  }
  void turn_all(T beta) {
    T *const r = r_.ref().data, *const p = p_.ref().data;
    const detail::RowsInPlace<T, D, detail::TurnAt<T>> row({beta, r, p});
    const PhaseScope scope(system_.phases(), Phase::sweep);
    sweep<T, D>(this->rows_, {row, p_.ref(), {&r, 1}, {&p, 1}}, how());
  }
  /// With 0 for every value: are outside cells of r + beta p, rounded, those of r plus beta times those of p,
  /// rounded? Where they are 0, u or -u.
  static bool linear_in_every_bit(const BoundaryRules<D>& rules) {
    const auto linear = [](const BoundaryRule& rule) {
      return rule.kind != Boundary::robin && rule.kind != Boundary::own;
    };
    return std::all_of(rules.low.begin(), rules.low.end(), linear) &&
           std::all_of(rules.high.begin(), rules.high.end(), linear);
  }

  Field<T, D> u_, r_, p_;
  std::unique_ptr<CellSum<D>> sum_of_u_;  ///< of singular systems
  BoundaryRules<D> homogeneous_;
  bool may_turn_ahead_;
  std::int64_t lead_;                    ///< see Fetch
  FastestWay ways_ = FastestWay::of(2);  ///< plain; or fetching, p turned ahead
  detail::Stopwatch watch_;
};

}  // namespace isohalo
