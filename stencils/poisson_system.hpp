#pragma once
/// -laplace(u) = f on a grid (docs/model.md, kind = "poisson"): what the methods that solve it share.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/solver.hpp"
#include "stencils/boundary.hpp"
#include "stencils/poisson_spectrum.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/row_terms.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

enum class PoissonMethod { jacobi, red_black, chebyshev, cg };

/// The equation's numbers and those of the method.
template <int D>
struct PoissonEquation {
  GridSettings<D> grid;
  PoissonMethod method = PoissonMethod::jacobi;
  double omega = 1;                        ///< of jacobi and red_black
  double lambda_low = 0, lambda_high = 0;  ///< of chebyshev: the eigenvalues lie between them

  template <class T>
  PerDim<T, D> q() const {
    PerDim<T, D> q;
    const PerDim<double, D> exact = inverse_squares(grid);
    for (int j = 0; j < D; ++j) q[j] = static_cast<T>(exact[j]);
    return q;
  }
  double diagonal() const { return laplace_diagonal(grid); }
  bool singular() const { return known_up_to_a_constant(grid); }
  /// Then, does a side have a given gradient?
  bool singular_with_gradient() const {
    if (!singular()) return false;
    for (int j = 0; j < D; ++j)
      for (const auto& rule : {grid.boundary.low[j], grid.boundary.high[j]})
        if (rule.has_gradient() || rule.kind == Boundary::robin) return true;
    return false;
  }
};

/// The source field and the sums over the grid. All sums go through the reduction tree.
template <class T, int D>
class PoissonSystem {
 public:
  /// The source gets the ghosts that `depth` sweeps need. Collective in order.
  PoissonSystem(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth, Exchange exchange)
      : domain_(domain),
        equation_(equation),
        plan_(domain, StencilShape<D>::star(1), depth,
              HaloOptions<D>{equation.grid.boundary.mirror_low(), equation.grid.boundary.mirror_high(), exchange,
                             host_workers()}),
        source_(
            made_on_all(domain.comm(),  // more plans follow
                        [&] { return Field<T, D>("f", domain.owned(), plan_.ghost_low(), plan_.ghost_high()); })),
        sum_(domain) {}

  const ArrayRef<T, D>& source() const { return source_.ref(); }
  bool singular() const { return equation_.singular(); }
  Laplacian<T, D> laplacian(const Index<D>& stride) const {
    return Laplacian<T, D>(equation_.template q<T>(), stride);
  }

  /// To be called when the source is in place. Collective. Throws UsageError, the same on all ranks, when there is
  /// no solution because the mean of f does not vanish, or when |r of u = 0| is no number.
  void start() {
    plan_.exchange(source_.ref());
    reference_ = zero_residual();
    if (!std::isfinite(reference_))
      throw UsageError(fmt::format(
          "|r of u = 0|, which residuals are compared with, is no number: the squares of r add up to "
          "{}, the limit is 1.8e+308: use smaller values in [source] and domain.boundary, or larger cells",
          reference_));
  }

  /// How sums come together. Collective.
  void reduce_by(const ReductionOptions& options) { sum_.reduce_by(options); }
  void time_phases(PhaseClock* clock) { phases_ = clock; }
  PhaseClock* phases() const { return phases_; }

  /// The sum of value(x) over all cells, row(i, n) -> value as in TreeReducer::run_band. Collective. Fences.
  template <class RowValues>
  double sum(const char* label, const RowValues& row) {
    return sums_by(nullptr, nullptr, [&](CellSum<D>& tiles, std::vector<double>& scratch) {
      form_tile_values(label, tiles, scratch, row);
    });
  }
  /// The sum of terms that must be computed: see RowTerms. Collective. Fences.
  template <class Terms>
  double sum_of_terms(const char* label, const Terms& terms_of) {
    return sum(label, [&](const Index<D>& i, std::int64_t) { return RowTerms<D, Terms>(terms_of, i); });
  }
  /// The sum whose tile values form(sum, scratch) forms (kernel_sweep.hpp); where there is a `second` sum, whose
  /// tile values it forms as well, its value goes to `its`. The reductions go on together. Collective.
  template <class Form>
  double sums_by(CellSum<D>* second, double* its, const Form& form) {
    {
      const PhaseScope scope(phases_, Phase::sweep);
      form(sum_, scratch_);
    }
    const PhaseScope scope(phases_, Phase::reduction);
    if (!second) return sum_.combine();
    sum_.start(), second->start();
    const double sum = sum_.wait();
    *its = second->wait();
    return sum;
  }
  double mean(const ArrayRef<T, D>& u) {
    const double total = sum("isohalo::mean", [&](const Index<D>& i, std::int64_t) {
      const T* const v = &u.at(i);
      return [v](std::int64_t x) { return static_cast<double>(v[x]); };
    });
    return total / static_cast<double>(domain_.global().cells());
  }
  /// (r, r) of r = f + lap(u); `u` with its ghosts and outside cells in place. With `out` it also gets r (owned).
  double residual_square(const ArrayRef<T, D>& u, const ArrayRef<T, D>* out = nullptr) {
    const Laplacian<T, D> lap = laplacian(u.stride);
    const auto residual_at = [&u, &f_all = source(), lap](const Index<D>& i) {
      return [lap, v = &u.at(i), f = &f_all.at(i)](std::int64_t x) { return f[x] + lap(v + x); };
    };
    if (out) {
      const PhaseScope scope(phases_, Phase::sweep);
      for_each_row_of("isohalo::norm", domain_.owned(), [&](const Index<D>& i, std::int64_t n) {
        const auto residual = residual_at(i);
        T* const r = &out->at(i);
        for (std::int64_t x = 0; x < n; ++x) r[x] = residual(x);
      });
    }
    const auto squares = [residual_at](const Index<D>& i) {
      return [residual = residual_at(i)](std::int64_t x) {
        const double r = static_cast<double>(residual(x));
        return r * r;
      };
    };
    return sum_of_terms("isohalo::norm", squares);
  }

  /// The sum of the squared changes from `before` to `after`, owned cells.
  double change_square(const ArrayRef<T, D>& before, const ArrayRef<T, D>& after) {
    return sum("isohalo::change", [&](const Index<D>& i, std::int64_t) {
      const T *const b = &before.at(i), *const a = &after.at(i);
      return [=](std::int64_t x) {
        const double change = static_cast<double>(a[x]) - static_cast<double>(b[x]);
        return change * change;
      };
    });
  }

  /// Fills the outside cells that the operator reads from the owned cells and ghosts of `u`. Local.
  void place_outside(const ArrayRef<T, D>& u, const BoundaryRules<D>& rules) const {
    const PhaseScope scope(phases_, Phase::boundary);
    const Box<D> valid = domain_.owned().grown(index_of<D>(1), index_of<D>(1)).intersect(domain_.global());
    fill_outside(u, rules, domain_.global(), valid, index_of<D>(1), index_of<D>(1));
  }

  /// ||r|| <= limit ||r of u = 0||, or ||r|| <= limit when that is 0; `square` = (r, r).
  StopTest stop_test(double limit, double square) const {
    const double norm = std::sqrt(square), first = std::sqrt(reference_);
    if (first > 0) return {norm <= limit * first, norm / first, "|r| / |r of u = 0|"};
    return {norm <= limit, norm, "|r|"};
  }

 private:
  /// r: of u = 0, which is f but beside sides with a given gradient. Sums of laplace(u) over the grid vanish
  /// without them, whatever u is.
  void check_mean(const ArrayRef<T, D>& r) {
    const double average = mean(r);
    double most = 0;
    for_each_cell(domain_.owned(),
                  [&](const Index<D>& i) { most = std::max(most, std::abs(static_cast<double>(r.at(i)))); });
    domain_.comm().allreduce(&most, 1, MPI_DOUBLE, MPI_MAX);
    // Values are rounded one by one, so the mean of an f that vanishes in exact arithmetic is some roundings away.
    const double allowed = 1000 * static_cast<double>(std::numeric_limits<T>::epsilon()) * most;
    if (std::abs(average) > allowed)
      throw UsageError(fmt::format(
          "the mean of the source f{} is {:.17g}; without a dirichlet or fixed side, or robin with a > 0, it must "
          "vanish (up to {:.3g}, rounding): subtract it from [source] or give a side a value",
          equation_.singular_with_gradient() ? " and of what the given gradients bring in" : "", average, allowed));
  }

  /// (r, r) of u = 0.
  double zero_residual() {
    const Field<T, D> zero("u = 0", domain_.owned(), index_of<D>(1), index_of<D>(1));
    place_outside(zero.ref(), equation_.grid.boundary);
    if (equation_.singular_with_gradient()) {
      const Field<T, D> r("r of u = 0", domain_.owned(), {}, {});
      residual_square(zero.ref(), &r.ref());
      check_mean(r.ref());
    } else if (singular()) {
      check_mean(source_.ref());
    }
    return residual_square(zero.ref());
  }

  CartesianDomain<D> domain_;
  PoissonEquation<D> equation_;
  HaloPlan<D> plan_;
  Field<T, D> source_;
  CellSum<D> sum_;
  std::vector<double> scratch_;
  double reference_ = 0;
  PhaseClock* phases_ = nullptr;
};

/// The solver of equation.method, its fields in the memory of DeviceSpace (device_field.hpp). Collective in order.
template <class T, int D>
std::unique_ptr<Solver<D>> make_poisson_on_device(const CartesianDomain<D>& domain,
                                                  const PoissonEquation<D>& equation, int depth, Exchange exchange);

}  // namespace isohalo
