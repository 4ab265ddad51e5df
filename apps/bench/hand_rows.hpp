#pragma once
/// The rows of the hand-written opponents of `bench sweep`: what a careful programmer writes for one case, in plain
/// loops. docs/model.md has the order of the operations. A row takes those of its fields in the old arrays and then
/// in the new ones; one of a second time level finds the values of a step before where it writes.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "datatypes/box.hpp"

namespace isohalo {

/// laplace(u) at the cell `u`.
template <int D>
inline double hand_laplace(const double* u, const PerDim<double, D>& q, const Index<D>& s) {
  const double twice = 2 * u[0];
  const auto second = [&](int j, std::int64_t d) { return q[j] * ((u[-d] - twice) + u[d]); };
  if constexpr (D == 1) return second(0, 1);
  double lap = second(0, s[0]);
  for (int j = 1; j < D - 1; ++j) lap = lap + second(j, s[j]);
  return lap + second(D - 1, 1);
}

template <int D>
struct HandHeatRow {
  PerDim<double, D> c;
  Index<D> s;
  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    const PerDim<double, D> q = c;
    const Index<D> d = s;
    for (std::int64_t x = 0; x < n; ++x) out[x] = u[x] + hand_laplace<D>(u + x, q, d);
  }
};

/// The cube of 27 cells around, from nine rows.
class HandBoxRow {
 public:
  HandBoxRow(const std::vector<Index<3>>&, const std::vector<double>& w, const Index<3>& s) : s_(s) {
    std::copy(w.begin(), w.end(), w_.begin());
  }
  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    const auto w = w_;
    const std::int64_t a = s_[0], b = s_[1];
    const double* p[9] = {u - a - b, u - a, u - a + b, u - b, u, u + b, u + a - b, u + a, u + a + b};
    for (std::int64_t x = 0; x < n; ++x) {
      double sum = w[0] * p[0][x - 1] + w[1] * p[0][x] + w[2] * p[0][x + 1];
      for (int k = 1; k < 9; ++k) {
        sum = sum + w[static_cast<std::size_t>(3 * k)] * p[k][x - 1];
        sum = sum + w[static_cast<std::size_t>(3 * k + 1)] * p[k][x];
        sum = sum + w[static_cast<std::size_t>(3 * k + 2)] * p[k][x + 1];
      }
      out[x] = sum;
    }
  }

 private:
  std::array<double, 27> w_{};
  Index<3> s_;
};

/// N weighted neighbors, at most `Layers` away, all in one expression.
template <int D, std::size_t N, int Layers>
class HandListRow {
 public:
  static constexpr std::int64_t kLayers = Layers;
  HandListRow(const std::vector<Index<D>>& offsets, const std::vector<double>& weights, const Index<D>& s) {
    for (std::size_t k = 0; k < N; ++k) {
      for (int j = 0; j < D; ++j) at_[k] += offsets[k][j] * s[j];
      w_[k] = weights[k];
    }
  }
  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      const auto w = w_;
      const double* const p[N] = {u + at_[0], u + at_[K + 1]...};
      for (std::int64_t x = 0; x < n; ++x) {
        double sum = w[0] * p[0][x];
        ((sum = sum + w[K + 1] * p[K + 1][x]), ...);
        out[x] = sum;
      }
    }
    (std::make_index_sequence<N - 1>());
  }

 private:
  std::array<std::int64_t, N> at_{};
  std::array<double, N> w_{};
};

/// The wave equation with constant coefficients.
template <int D>
struct HandWaveRow {
  PerDim<double, D> r;
  double c, damping, dt;
  Index<D> s;
  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    const double half = 0.5 * (damping * dt), keep = 1 - half, over = 1 + half, dd = dt * dt, cc = c * c;
    const PerDim<double, D> q = r;
    const Index<D> d = s;
    for (std::int64_t x = 0; x < n; ++x)
      out[x] = ((2 * u[x] - keep * out[x]) + dd * (cc * hand_laplace<D>(u + x, q, d))) / over;
  }
};

/// Two substances that react and diffuse, in the plane.
struct HandGrayScottRow {
  PerDim<double, 2> r;
  double Du, Dv, F, k, dt;
  Index<2> s;
  void operator()(const double* __restrict u, const double* __restrict v, double* __restrict u_new,
                  double* __restrict v_new, std::int64_t n) const {
    const double a = Du, b = Dv, f = F, fk = F + k, t = dt;
    const PerDim<double, 2> q = r;
    const Index<2> d = s;
    for (std::int64_t x = 0; x < n; ++x) {
      const double uvv = u[x] * (v[x] * v[x]);
      u_new[x] = u[x] + t * ((a * hand_laplace<2>(u + x, q, d) - uvv) + f * (1 - u[x]));
      v_new[x] = v[x] + t * ((b * hand_laplace<2>(v + x, q, d) + uvv) - fk * v[x]);
    }
  }
};

/// The game of life by the rule B3/S23, by vectors of bytes.
struct HandLifeRow {
  std::int64_t s;
  void operator()(const std::uint8_t* __restrict u, std::uint8_t* __restrict out, std::int64_t n) const {
    const std::uint8_t *const a = u - s, *const b = u + s;
    for (std::int64_t x = 0; x < n; ++x) {
      const auto living =
          static_cast<std::uint8_t>(a[x - 1] + a[x] + a[x + 1] + u[x - 1] + u[x + 1] + b[x - 1] + b[x] + b[x + 1]);
      out[x] = static_cast<std::uint8_t>((living == 3) | ((living == 2) & u[x]));
    }
  }
};

}  // namespace isohalo
