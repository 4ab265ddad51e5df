#pragma once
/// What the grid and its boundary rules say about the operator -laplace: its diagonal, bounds of its eigenvalues,
/// and the factors that follow from them. All in binary64, by +, -, *, / and sqrt alone, so that machines with
/// other mathematical libraries have the same bits (docs/model.md, "poisson").

#include <algorithm>
#include <cmath>
#include <numbers>

#include "framework/run/solver.hpp"

namespace isohalo {

/// q_j = 1/(h_j h_j).
template <int D>
PerDim<double, D> inverse_squares(const GridSettings<D>& grid) {
  PerDim<double, D> q;
  for (int j = 0; j < D; ++j) q[j] = 1 / (grid.spacing[j] * grid.spacing[j]);
  return q;
}

/// 2 (q_0 + q_1 + ..): the coefficient of u(i) in -lap(u), away from the sides.
template <int D>
double laplace_diagonal(const GridSettings<D>& grid) {
  const PerDim<double, D> q = inverse_squares(grid);
  double sum = q[0];
  for (int j = 1; j < D; ++j) sum = sum + q[j];
  return 2 * sum;
}

/// Does the side give a value?
inline bool gives_value(const BoundaryRule& rule) {
  return rule.kind == Boundary::dirichlet || rule.kind == Boundary::fixed;
}
/// Or does it tie one to a gradient?
inline bool ties_value(const BoundaryRule& rule) {
  return rule.kind == Boundary::robin && rule.parameters[0] > 0;
}

/// Without a side that gives or ties values a solution is known up to a constant only.
template <int D>
bool known_up_to_a_constant(const GridSettings<D>& grid) {
  for (int j = 0; j < D; ++j)
    for (const auto* rule : {&grid.boundary.low[j], &grid.boundary.high[j]})
      if (gives_value(*rule) || ties_value(*rule)) return false;
  return true;
}

namespace detail {

/// At most 2 - 2 cos(angle) for an angle from 0 to pi, and close to it where that is small.
inline double below_eigenvalue(double angle) {
  const double square = angle * angle;
  return square * (1 - square / 12);
}

}  // namespace detail

/// Not above the smallest eigenvalue of -lap (homogeneous outside values), or, where that is 0 because a solution
/// is known up to a constant only, the smallest but that one. 0 for a grid of one cell without a value on a side.
///
/// The eigenvalues of a dimension are q (2 - 2 cos(angle)), those of the grid sums of one from each dimension; see
/// for instance G. Strang, "The discrete cosine transform", SIAM Review 41 (1999), for what the rules make of the
/// angles.
template <int D>
double least_eigenvalue(const GridSettings<D>& grid) {
  const PerDim<double, D> q = inverse_squares(grid);
  const bool singular = known_up_to_a_constant(grid);
  double sum = 0, least = 0;
  for (int j = 0; j < D; ++j) {
    const BoundaryRule &low = grid.boundary.low[j], &high = grid.boundary.high[j];
    const double cells = static_cast<double>(grid.shape[j]);
    if (singular) {
      if (grid.shape[j] == 1) continue;
      const double waves = low.kind == Boundary::periodic ? 2 : 1;
      const double value = q[j] * detail::below_eigenvalue((waves * std::numbers::pi) / cells);
      least = least > 0 ? std::min(least, value) : value;
    } else {
      // A fixed value stands half a cell beyond the face.
      const double length =
          cells + 0.5 * ((low.kind == Boundary::fixed ? 1 : 0) + (high.kind == Boundary::fixed ? 1 : 0));
      const int values = (gives_value(low) ? 1 : 0) + (gives_value(high) ? 1 : 0);
      sum = sum + q[j] * detail::below_eigenvalue(((0.5 * values) * std::numbers::pi) / length);
    }
  }
  return singular ? least : sum;
}

/// Two cells of one colour are neighbors: across the ends of a periodic dimension with an odd number of cells, at
/// least so many. (With one, a cell is its own neighbor, whose terms cancel.)
template <int D>
bool colours_meet(const GridSettings<D>& grid, std::int64_t least = 3) {
  for (int j = 0; j < D; ++j)
    if (grid.boundary.low[j].kind == Boundary::periodic && grid.shape[j] >= least && grid.shape[j] % 2 == 1)
      return true;
  return false;
}

/// The factor of successive over-relaxation with which, for these eigenvalues, errors fall fastest; 1 where colours
/// meet, since then large factors may let them grow, and for a grid of one cell. D. M. Young, Iterative Solution of
/// Large Linear Systems (1971), chapter 6.
template <int D>
double best_over_relaxation(const GridSettings<D>& grid) {
  const double least = least_eigenvalue(grid);
  if (colours_meet(grid) || !(least > 0)) return 1;
  const double part = least / laplace_diagonal(grid);
  return 2 / (1 + std::sqrt(part * (2 - part)));
}

/// The coefficients of Chebyshev's semi-iteration for eigenvalues from `low` to `high`, step after step: in step n
/// u' = u + (change (u - u_before) + residual r). G. H. Golub and R. S. Varga, Numerische Mathematik 3 (1961).
class ChebyshevSteps {
 public:
  /// 0 <= low <= high, high > 0.
  ChebyshevSteps(double low, double high)
      : centre_((high + low) / 2), quarter_(((high - low) / (high + low)) * ((high - low) / (high + low)) / 4) {}

  /// To those of the next step; from the start, those of the first.
  void next() {
    if (steps_++ == 0) {
      change_ = 0;
      residual_ = 1 / centre_;
      return;
    }
    const double before = weight_;
    weight_ = 1 / (1 - quarter_ * before);
    change_ = (quarter_ * weight_) * before;
    residual_ = weight_ / centre_;
  }
  /// As after `steps` times `next` from the start.
  void go_to(std::int64_t steps) {
    weight_ = 2;
    for (steps_ = 0; steps_ < steps;) next();
  }
  double change() const { return change_; }
  double residual() const { return residual_; }

 private:
  double centre_, quarter_;
  double weight_ = 2, change_ = 0, residual_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace isohalo
