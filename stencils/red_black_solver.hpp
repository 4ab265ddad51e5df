#pragma once
/// poisson, method = "red_black": successive over-relaxation, the red cells first, then the black ones.

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "stencils/relaxation.hpp"

namespace isohalo {

/// What tells the cells of red_black from each other: their colours, and the sides that they lie at, on which their
/// weights depend. Cells around a block are those of the grid that they are copies of.
template <class T, int D>
class RedBlackCells {
 public:
  explicit RedBlackCells(const PoissonEquation<D>& equation) : shape_(equation.grid.shape) {
    for (int j = 0; j < D; ++j) periodic_[j] = equation.grid.boundary.low[j].kind == Boundary::periodic;
  }

  bool periodic(int j) const { return periodic_[j]; }
  std::int64_t extent(int j) const { return shape_[j]; }
  KOKKOS_FUNCTION std::int64_t wrapped(std::int64_t i, int j) const {
    if (!periodic_[j] || (i >= 0 && i < shape_[j])) return i;
    const std::int64_t rest = i % shape_[j];
    return rest < 0 ? rest + shape_[j] : rest;
  }
  /// Of dimension j where a cell lies at `i`: 1 the lower one, 2 the upper one, added.
  KOKKOS_FUNCTION std::size_t sides(std::int64_t i, int j) const {
    return periodic_[j] ? 0 : (i == 0 ? 1u : 0u) + (i == shape_[j] - 1 ? 2u : 0u);
  }

  /// The weight omega / D(i) by the sides that a cell lies at, two bits a dimension.
  std::vector<T> weights(const PoissonEquation<D>& equation) const {
    std::vector<T> weights;
    const PerDim<double, D> q = inverse_squares(equation.grid);
    std::size_t places = 1;
    for (int j = 0; j < D; ++j) places *= 4;
    for (std::size_t place = 0; place < places; ++place) {
      double diagonal = 0;
      for (int j = 0; j < D; ++j) {
        const std::size_t at = place >> (2 * (D - 1 - j));
        double times = periodic_[j] && shape_[j] == 1 ? 0 : 2;
        if (at & 1) times += own_part(equation.grid.boundary.low[j], equation.grid.spacing[j]);
        if (at & 2) times += own_part(equation.grid.boundary.high[j], equation.grid.spacing[j]);
        diagonal = diagonal + times * q[j];
      }
      weights.push_back(static_cast<T>(diagonal > 0 ? equation.omega / diagonal : 0));
    }
    return weights;
  }

 private:
  /// What the outside cell takes away from u(i), as a multiple of it.
  static double own_part(const BoundaryRule& rule, double h) {
    if (rule.kind == Boundary::robin) {
      const double a = 0.5 * rule.parameters[0], b = rule.parameters[1] / h;
      return (a - b) / (a + b);
    }
    return rule.kind == Boundary::dirichlet ? 1 : rule.kind == Boundary::neumann ? -1 : 0;
  }

  Index<D> shape_;
  PerDim<bool, D> periodic_{};
};

/// u + w r, r = f + lap(u), at the cell whose address is `u` (docs/model.md, "red_black").
template <class T, int D>
KOKKOS_FUNCTION T relaxed(const Laplacian<T, D>& laplacian, const T* u, T f, T weight) {
  return *u + weight * (f + laplacian(u));
}

/// The half step of one colour: u' = u + w r in its cells, u' = u in the others, which are not written where u' is
/// to be in the place of u.
template <class T, int D>
class RedBlackRow final : public RowKernel<T, D> {
 public:
  /// `colour`: 0 red, 1 black.
  RedBlackRow(const Laplacian<T, D>& laplacian, const ArrayRef<T, D>& f, const PoissonEquation<D>& equation,
              int colour)
      : laplacian_(laplacian), f_(f), cells_(equation), weights_(cells_.weights(equation)), colour_(colour) {
    for (std::size_t row = 0; row < weights_.size(); row += 4)
      one_weight_.push_back(
          std::all_of(&weights_[row], &weights_[row] + 4, [&](T w) { return w == weights_[row]; }));
  }

  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>& i) const override {
    const Laplacian<T, D> laplacian = laplacian_;  // a copy, which no store changes
    rows.for_each<D>(i, [&](std::int64_t k, const Index<D>& first) {
      row(laplacian, in[0] + at + k, out[0] + to + k, rows.cells, first);
    });
  }
  const T* source_at(const Index<D>& i) const override { return &f_.at(i); }

 private:
  void row(const Laplacian<T, D>& laplacian, const T* in, T* out, std::int64_t n, const Index<D>& i) const {
    std::int64_t parity = colour_;
    std::size_t place = 0;
    for (int j = 0; j + 1 < D; ++j) {
      const std::int64_t at = cells_.wrapped(i[j], j);
      parity += at;
      place = 4 * place + cells_.sides(at, j);
    }
    const T* const f = &f_.at(i);
    // In pieces without a change of colour or weight but at their ends.
    const std::int64_t cells = cells_.extent(D - 1);
    const bool whole = cells_.periodic(D - 1) || one_weight_[place];
    for (std::int64_t x = 0; x < n;) {
      const std::int64_t at = cells_.wrapped(i[D - 1] + x, D - 1);
      const std::size_t here = cells_.sides(at, D - 1);
      const std::int64_t end = whole ? cells : here ? at + 1 : cells - 1;
      const std::int64_t length = std::min(n - x, end - at);
      const T weight = weights_[4 * place + here];
      const std::int64_t first = (parity + at) & 1;
      in == out ? in_place(laplacian, out + x, f + x, length, weight, first)
                : every_other(laplacian, in + x, out + x, f + x, length, weight, first);
      x += length;
    }
  }
  /// Cells first, first + 2, .. change. All are computed, in vectors, and every other one is taken.
  static void every_other(const Laplacian<T, D>& laplacian, const T* in, T* __restrict out, const T* f,
                          std::int64_t n, T weight, std::int64_t first) {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) {
      const T u = in[x], changed = relaxed(laplacian, in + x, f[x], weight);
      out[x] = (x ^ first) & 1 ? u : changed;
    }
  }
  /// The others are not written, which the next half step could have to wait for.
  static void in_place(const Laplacian<T, D>& laplacian, T* u, const T* f, std::int64_t n, T weight,
                       std::int64_t first) {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = first; x < n; x += 2) u[x] = relaxed(laplacian, u + x, f[x], weight);
  }

  Laplacian<T, D> laplacian_;
  ArrayRef<T, D> f_;
  RedBlackCells<T, D> cells_;
  std::vector<T> weights_;
  std::vector<bool> one_weight_;  ///< of rows: at both ends the same as between
  int colour_;
};

/// Two sweeps a step, the red cells' and the black ones' in turns, so a halo for k steps is one for 2 k sweeps. The
/// outside cells that a black cell reads follow from that cell alone or from a given value: they need not be filled
/// again after the red sweep, but are.
template <class T, int D>
class RedBlackSolver : public Relaxation<T, D> {
 public:
  /// Collective in order.
  RedBlackSolver(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth, Exchange exchange)
      : Relaxation<T, D>(domain, equation, 2 * depth, exchange,
                         [&](const Index<D>& stride, const PoissonSystem<T, D>& system) {
                           const auto row = [&](int colour) {
                             return RedBlackRow<T, D>(system.laplacian(stride), system.source(), equation, colour);
                           };
                           return std::array{row(0), row(1)};
                         }),
        rows_({domain.owned()}) {
    this->stepper_.change_over_two();
    if (!colours_meet(equation.grid, 1)) this->stepper_.update_in_place();
    if (equation.singular())
      before_ = made_on_all(domain.comm(), [&] { return Field<T, D>("u (before)", domain.owned(), {}, {}); });
  }

  int depth() const override { return this->stepper_.depth() / 2; }

  /// All steps at once if none ends with a mean, so that the stepper takes their sweeps together: black cells
  /// follow red ones while these are in cache.
  double advance(std::int64_t steps, bool change) override {
    if (this->system_.singular()) return Relaxation<T, D>::advance(steps, change);
    return this->stepper_.advance(2 * steps, change);
  }

 protected:
  /// One that ends with a mean.
  double step(bool change) override {
    auto& stepper = this->stepper_;
    if (change) keep();
    stepper.advance(2, false);
    this->remove_mean();
    return change ? this->system_.change_square(before_->ref(), stepper.field()) : 0;
  }

 private:
  /// Neither of the stepper's fields is the old one after two sweeps.
  void keep() {
    const PhaseScope scope(this->system_.phases(), Phase::sweep);
    const ArrayRef<T, D> u = this->stepper_.field(), before = before_->ref();
    for_each_row_of("isohalo::keep", rows_,
                    [=](const Index<D>& i, std::int64_t n) { std::copy_n(&u.at(i), n, &before.at(i)); });
  }

  std::optional<Field<T, D>> before_;  ///< of steps that end with a mean
  SweepRegion<D> rows_;
};

}  // namespace isohalo
