#pragma once
/// poisson, method = "cg", with vectors in memory of the host.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "datatypes/fetch.hpp"
#include "datatypes/independent.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "framework/schedule/stopwatch.hpp"
#include "stencils/conjugate_gradients.hpp"
#include "stencils/kernel_sweep.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/streamed_rows.hpp"

namespace isohalo {

namespace detail {

/// p = r + beta p, a row and a plane ahead of the rows of cells of which (p, A p) is formed: p is read there from
/// cache. These come band by band (TreeReducer::bands). Ghosts of p are turned as well, from those of r.
template <class T, int D>
class TurnAhead {
 public:
  /// `a`: of the first owned cell.
  TurnAhead(T beta, const ArrayRef<T, D>& r, const ArrayRef<T, D>& p, const OperatorAt<T, D>& a)
      : turn_{beta, r.data, p.data}, a_(a), owned_(p.owned), stride_(p.stride) {
    for (int j = 0; j + 1 < D; ++j) ahead_ += stride_[j];
  }

  /// Of `rows` rows of n cells from cell i on, in which all those before are done with: turns what they read and
  /// has not been turned yet, adds their terms to the sums (see TreeReducer::run_band), and fetches what as many
  /// rows from cell `later` on will ask for.
  [[gnu::flatten]] void add(const Index<D>& i, std::int64_t n, std::int64_t rows, const Index<D>& later,
                            double* sums, bool first) const {
    const std::int64_t at = place(i), to_come = place(later) + ahead_;
    Box<D> turned = Box<D>::of_cell(i);
    for (int j = 0; j + 1 < D; ++j) {
      turned.low[j] += i[j] == owned_.low[j] ? -1 : 1;
      turned.high[j] += j == D - 2 ? rows : 1;
    }
    // A line more than the cells that are added: neighbors of theirs in the row may be among what is turned now.
    std::int64_t done = i[D - 1] == owned_.low[D - 1] ? -1 : 1;
    const auto turn_to = [&](std::int64_t x) {
      const std::int64_t high = x + kLine < n ? x + kLine : n + 1;
      if (done < high) turn(turned, done, high);
      done = high;
    };
    const std::int64_t head = std::min(n, to_next_line(turn_.p + at)), end = head + (n - head) / kLine * kLine;
    turn_to(head);
    add_some(at, head, rows, sums, first);
    for (std::int64_t x = head, m = 0; x < end; x += m) {
      m = std::min(4 * kLine, end - x);
      for (std::int64_t k = 0; k < rows; ++k)
        for (std::int64_t y = x + k * apart(); y < x + m + k * apart(); y += kLine)
          fetch_line(turn_.r + to_come + y), fetch_line(turn_.p + to_come + y);
      turn_to(x + m);
      add_lines(at + x, m, rows, sums + x, first);
    }
    add_some(at + end, n - end, rows, sums + end, first);
  }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(T);

  std::int64_t place(const Index<D>& i) const { return offset_of<D>(i, owned_.low, stride_); }
  /// From a row to the next one.
  std::int64_t apart() const { return D > 1 ? stride_[D - 2] : 0; }
  /// Cells low .. high-1 of these rows, counted from the first one's; beside the block only those that a star
  /// reaches.
  void turn(const Box<D>& rows, std::int64_t low, std::int64_t high) const {
    for_each_cell(rows, [&](const Index<D>& i) {
      int outside = 0;
      for (int j = 0; j + 1 < D; ++j) outside += i[j] < owned_.low[j] || i[j] >= owned_.high[j];
      if (outside > 1) return;
      const std::int64_t at = place(i), last = owned_.high[D - 1] - i[D - 1];
      if (outside == 0 && low < 0) turn_(at - 1);
      if (outside == 0 && high > last) turn_(at + last);
      const std::int64_t begin = std::max<std::int64_t>(low, 0), m = std::min(high, last) - begin;
      const TurnAt<T> turn = turn_;
      ISOHALO_INDEPENDENT
      for (std::int64_t k = 0; k < m; ++k) turn(at + begin + k);
    });
  }
  /// n cells of each row, whole lines.
  void add_lines(std::int64_t at, std::int64_t n, std::int64_t rows, double* sums, bool first) const {
    const OperatorAt<T, D> a = a_;  // a copy, which no store changes
    constexpr int lanes = VectorOf<T, kVectorBytes>::kLanes;
    if (first) std::fill_n(sums, n, -0.0);  // -0 + x is x, whatever x is
    for (std::int64_t k = 0; k < rows; ++k, at += apart())
      for (std::int64_t x = 0; x < n; x += kLine) {
        alignas(64) double terms[kLine];
        each_part<kLine / lanes>([&](auto p) {
          ISOHALO_ONE_VECTOR
          for (int e = 0; e < lanes; ++e) {
            const int l = p * lanes + e;
            terms[l] = a.product(at + x + l);
          }
        });
        add_line<kLine>(sums + x, terms);
      }
  }
  void add_some(std::int64_t at, std::int64_t n, std::int64_t rows, double* sums, bool first) const {
    for (std::int64_t k = 0; k < rows; ++k, at += apart(), first = false)
      for (std::int64_t x = 0; x < n; ++x) sums[x] = first ? a_.product(at + x) : sums[x] + a_.product(at + x);
  }

  TurnAt<T> turn_;
  OperatorAt<T, D> a_;
  Box<D> owned_;
  Index<D> stride_;
  std::int64_t ahead_ = 0;
};

/// Rows of (p, A p) where p is turned ahead, for TreeReducer::run_band.
template <class T, int D>
struct TurnedRows {
  const TurnAhead<T, D>& turn;
  Index<D> i, later;  ///< where they begin, and what is to be fetched meanwhile

  static bool takes_four() { return true; }
  void add(double* sums, std::int64_t n, std::int64_t rows, bool first) const {
    turn.add(i, n, rows, later, sums, first);
  }
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
    if (settings.way) ways_ = FastestWay::decided_for(Fetch::by_way(*settings.way, 0).ahead);
  }
  std::string sweeps() const override { return Fetch::text(ways_); }

 protected:
  std::array<ArrayRef<T, D>, 3> on_host() override { return {u_.ref(), r_.ref(), p_.ref()}; }

  double curvature() override {
    this->place_outside(p_.ref(), homogeneous_);
    return system_.sum_of_terms("isohalo::dot", [this, laplacian = laplacian()](const Index<D>& i) {
      return [a = detail::OperatorAt<T, D>{laplacian, &p_.at(i)}](std::int64_t x) { return a.product(x); };
    });
  }
  double descend(T alpha, T shift, double& sum_of_u) override {
    watch_ = detail::Stopwatch(!ways_.decided());
    T *const p = p_.ref().data, *const out[] = {r_.ref().data, u_.ref().data};
    const detail::RowsInPlace<T, D, detail::DescentAt<T, D>> row({alpha, shift, {laplacian(), p}, out[1], out[0]});
    return system_.sums_by(sum_of_u_.get(), &sum_of_u, [&](CellSum<D>& sum, std::vector<double>& scratch) {
      sweep_with_terms<T, D>(sum, sum_of_u_.get(), scratch, {row, p_.ref(), {&p, 1}, out}, how());
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

  /// The ghosts and outside cells of r instead of those of p, which are turned like the cells inside.
  double turn_ahead(T beta) {
    this->place_outside(r_.ref(), homogeneous_);
    const detail::TurnAhead<T, D> turn(beta, r_.ref(), p_.ref(), {laplacian(), p_.ref().data});
    return system_.sum("isohalo::dot", [&](const Index<D>& i, std::int64_t, const Index<D>& later) {
      return detail::TurnedRows<T, D>{turn, behind<D>(i, 0), behind<D>(later, 0)};
    });
  }
  void turn_all(T beta) {
    T *const r = r_.ref().data, *const p = p_.ref().data;
    const detail::RowsInPlace<T, D, detail::TurnAt<T>> row({beta, r, p});
    const PhaseScope scope(system_.phases(), Phase::sweep);
    sweep<T, D>(this->rows_, {row, p_.ref(), {&r, 1}, {&p, 1}}, Fetch::by_way(ways_.way(), 0));
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
