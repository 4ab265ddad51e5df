#pragma once
/// The rows of kind = "acoustics" (docs/model.md). They work in place, in binary64, rounding each result once.

#include <array>
#include <cstdint>

#include "datatypes/independent.hpp"
#include "stencils/row_kernels.hpp"

namespace isohalo {

/// v' = v - a (p(i) - p(i-e_j)) in faces of dimension j, a = (dt / rho) / h. Reads p and, `Given`, rho by cell.
template <class T, int D, bool Given>
class VelocityRow {
 public:
  static constexpr std::size_t kReads = Given ? 2 : 1;
  /// `below`: elements from a cell to that below it, in p and in rho.
  VelocityRow(const std::array<std::int64_t, kReads>& below, double a, double dt, double h)
      : below_(below), a_(a), dt_(dt), h_(h) {}

  [[gnu::noinline]] void operator()(const std::array<const T*, kReads>& in, T* out, std::int64_t n) const {
    const T* const p = in[0];
    const T* const p_below = p - below_[0];
    T* const v = out;
    const auto move = [v, p, p_below](std::int64_t x, double a) {
      v[x] = static_cast<T>(static_cast<double>(v[x]) -
                            a * (static_cast<double>(p[x]) - static_cast<double>(p_below[x])));
    };
    if constexpr (Given) {
      const T* const rho = in[1];
      const T* const rho_below = rho - below_[1];
      const double dt = dt_, h = h_;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x)
        move(x, (dt / (0.5 * (static_cast<double>(rho_below[x]) + static_cast<double>(rho[x])))) / h);
    } else {
      const double a = a_;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) move(x, a);
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

  [[gnu::noinline]] void operator()(const std::array<const T*, kReads>& in, T* out, std::int64_t n) const {
    PerDim<const T*, D> low, high;
    for (int j = 0; j < D; ++j) {
      high[j] = in[static_cast<std::size_t>(j)];
      low[j] = high[j] - (j == D - 1 ? 1 : below_[j]);  // rows are contiguous
    }
    T* const p = out;
    const auto move = [p, low, high](std::int64_t x, const auto& b) {
      double sum = 0;
      for (int j = 0; j < D; ++j) {
        const double t = b(j) * (static_cast<double>(high[j][x]) - static_cast<double>(low[j][x]));
        sum = j == 0 ? t : sum + t;
      }
      p[x] = static_cast<T>(static_cast<double>(p[x]) - sum);
    };
    if constexpr (Given) {
      const T* const modulus = in[D];
      const PerDim<double, D> h = h_;
      const double dt = dt_;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x)
        move(x, [h, k = dt * static_cast<double>(modulus[x])](int j) { return k / h[j]; });
    } else {
      const PerDim<double, D> b = b_;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) move(x, [b](int j) { return b[j]; });
    }
  }

 private:
  Index<D> below_;
  PerDim<double, D> b_;
  double dt_;
  PerDim<double, D> h_;
};

}  // namespace isohalo
