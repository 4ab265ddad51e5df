#pragma once
/// The rows of kind = "acoustics" (docs/model.md). They work in place, in binary64, rounding each result once, and
/// give the squared changes of their cells to `changes`, unless that is null.

#include <array>
#include <cstdint>

#include "datatypes/independent.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/solvers/acoustics_equation.hpp"

namespace isohalo {

namespace detail {

/// v[x] = step(v[x], x), rounded, for n cells.
template <class T, class Step>
void step_in_place(T* v, std::int64_t n, double* changes, const Step& step) {
  if (changes) {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) {
      const auto old = static_cast<double>(v[x]);
      v[x] = static_cast<T>(step(old, x));
      const double change = static_cast<double>(v[x]) - old;
      changes[x] = change * change;
    }
  } else {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) v[x] = static_cast<T>(step(static_cast<double>(v[x]), x));
  }
}

}  // namespace detail

/// v' = v - a (p(i) - p(i-e_j)) in faces of dimension j, a = (dt / rho) / h. Reads p and, `Given`, rho by cell.
template <class T, int D, bool Given>
class VelocityRow {
 public:
  static constexpr std::size_t kReads = Given ? 2 : 1;
  /// `below`: elements from a cell to that below it, in p and in rho.
  VelocityRow(const std::array<std::int64_t, kReads>& below, double a, double dt, double h)
      : below_(below), a_(a), dt_(dt), h_(h) {}

  [[gnu::noinline, gnu::flatten]] void operator()(const std::array<const T*, kReads>& in, T* v, std::int64_t n,
                                                  double* changes) const {
    const T* const p = in[0];
    const T* const p_below = p - below_[0];
    const auto moved = [p, p_below](double from, std::int64_t x, double a) {
      return detail::moved_velocity(from, a, static_cast<double>(p[x]), static_cast<double>(p_below[x]));
    };
    if constexpr (Given) {
      const T* const rho = in[1];
      const T* const rho_below = rho - below_[1];
      detail::step_in_place(v, n, changes, [=, dt = dt_, h = h_](double from, std::int64_t x) {
        return moved(
            from, x,
            detail::velocity_factor(static_cast<double>(rho[x]), static_cast<double>(rho_below[x]), dt, h));
      });
    } else {
      detail::step_in_place(v, n, changes, [=, a = a_](double from, std::int64_t x) { return moved(from, x, a); });
    }
  }

 private:
  std::array<std::int64_t, kReads> below_;
  double a_, dt_, h_;
};

/// p' = p - (t_0 + t_1 + ..), t_j = b_j (v_j(i+e_j) - v_j(i)), b_j = (dt K) / h_j. Reads the velocities in the
/// faces above the cells, which come later in memory, and, `Given`, K by cell.
template <class T, int D, bool Given>
class PressureRow {
 public:
  static constexpr std::size_t kReads = D + (Given ? 1 : 0);
  /// `below`: elements from a face to that on the other side of the cell.
  PressureRow(const Index<D>& below, const PerDim<double, D>& b, double dt, const PerDim<double, D>& h)
      : below_(below), b_(b), dt_(dt), h_(h) {}

  [[gnu::noinline, gnu::flatten]] void operator()(const std::array<const T*, kReads>& in, T* p, std::int64_t n,
                                                  double* changes) const {
    PerDim<const T*, D> low, high;
    for (int j = 0; j < D; ++j) {
      high[j] = in[static_cast<std::size_t>(j)];
      low[j] = high[j] - (j == D - 1 ? 1 : below_[j]);  // rows are contiguous
    }
    const auto moved = [low, high](double from, std::int64_t x, const auto& b) {
      return detail::moved_pressure<D>(
          from, b, [&](int j) { return static_cast<double>(high[j][x]) - static_cast<double>(low[j][x]); });
    };
    if constexpr (Given) {
      const T* const modulus = in[D];
      detail::step_in_place(p, n, changes, [=, h = h_, dt = dt_](double from, std::int64_t x) {
        return moved(from, x, [h, k = dt * static_cast<double>(modulus[x])](int j) { return k / h[j]; });
      });
    } else {
      detail::step_in_place(p, n, changes, [=, b = b_](double from, std::int64_t x) {
        return moved(from, x, [&b](int j) { return b[j]; });
      });
    }
  }

 private:
  Index<D> below_;
  PerDim<double, D> b_;
  double dt_;
  PerDim<double, D> h_;
};

}  // namespace isohalo
