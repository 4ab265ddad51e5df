#pragma once
/// Rows of the hand-written opponents whose solvers have coefficients, a source or stages. Those with constant
/// arrays take them from place k on.

#include <array>
#include <cstdint>

#include "apps/bench/hand_rows.hpp"
#include "datatypes/independent.hpp"
#include "stencils/poisson_spectrum.hpp"

namespace isohalo {

/// u_t + v . grad(u) = 0 with a constant velocity, first order. Which neighbor is read is decided outside the loop.
template <int D>
struct HandUpwindRow {
  PerDim<double, D> v;
  double dt;
  PerDim<double, D> inverse;
  Index<D> s;

  void operator()(const double* __restrict u, double* __restrict out, std::int64_t n) const {
    const double t = dt, v0 = v[0], v1 = v[1], v2 = v[D - 1], r0 = inverse[0], r1 = inverse[1], r2 = inverse[D - 1];
    const auto below = [&](int j) { return u - (v[j] > 0 ? s[j] : 0); };
    const double *const a = below(0), *const b = below(1), *const c = below(D - 1);
    const std::int64_t s0 = s[0], s1 = D == 2 ? 1 : s[1];
    for (std::int64_t x = 0; x < n; ++x) {
      double sum = v0 * ((a[x + s0] - a[x]) * r0) + v1 * ((b[x + s1] - b[x]) * r1);
      if constexpr (D == 3) sum = sum + v2 * ((c[x + 1] - c[x]) * r2);
      out[x] = u[x] - t * sum;
    }
  }
};

/// The same with a velocity that differs from cell to cell: `given` holds its components.
template <int D>
struct HandUpwindFieldRow {
  double dt;
  PerDim<double, D> inverse;
  Index<D> s;

  void operator()(const double* __restrict u, const std::array<double*, D>& given, std::int64_t k,
                  double* __restrict out, std::int64_t n) const {
    const double t = dt, r0 = inverse[0], r1 = inverse[1], r2 = inverse[D - 1];
    const double *const v0 = given[0] + k, *const v1 = given[1] + k, *const v2 = given[D - 1] + k;
    const std::int64_t s0 = s[0], s1 = D == 2 ? 1 : s[1];
    for (std::int64_t x = 0; x < n; ++x) {
      const double c = u[x];
      double sum = v0[x] * (difference(v0[x], c - u[x - s0], u[x + s0] - c) * r0) +
                   v1[x] * (difference(v1[x], c - u[x - s1], u[x + s1] - c) * r1);
      if constexpr (D == 3) sum = sum + v2[x] * (difference(v2[x], c - u[x - 1], u[x + 1] - c) * r2);
      out[x] = c - t * sum;
    }
  }

 private:
  static double difference(double w, double below, double above) { return w > 0 ? below : above; }
};

/// Third-order upwind-biased differences with a constant velocity, three stages. Against a velocity that is not
/// above 0 the slope is the negative of its mirror image: a step of -s and a factor of another sign, which is
/// exact.
template <int D>
struct HandUpwind3Row {
  static constexpr bool kStages = true;
  static constexpr std::int64_t kLayers = 2;
  PerDim<double, D> v;
  double dt;
  PerDim<double, D> inverse;
  Index<D> s;

  template <int K>
  void stage(const double* __restrict u, const double* begin, double* out, std::int64_t n) const {
    const double t = dt;
    const PerDim<double, D> along = v;
    PerDim<double, D> r;
    Index<D> d;
    for (int j = 0; j < D; ++j) {
      r[j] = inverse[j] / 6.0;
      d[j] = s[j];
      if (!(v[j] > 0)) r[j] = -r[j], d[j] = -d[j];
    }
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) {
      double sum = along[0] * slope(u + x, d[0], r[0]) + along[1] * slope(u + x, d[1], r[1]);
      if constexpr (D == 3) sum = sum + along[2] * slope(u + x, d[2], r[2]);
      const double euler = u[x] - t * sum;
      if constexpr (K == 0)
        out[x] = euler;
      else if constexpr (K == 1)
        out[x] = 0.75 * begin[x] + 0.25 * euler;
      else
        out[x] = (1.0 / 3.0) * begin[x] + (2.0 / 3.0) * euler;
    }
  }

 private:
  static double slope(const double* u, std::int64_t d, double r) {
    return (((2.0 * u[d] + 3.0 * u[0]) - 6.0 * u[-d]) + u[-2 * d]) * r;
  }
};

/// u_t = div(kappa grad(u)), kappa given.
template <int D>
struct HandKappaRow {
  double dt;
  PerDim<double, D> r;
  Index<D> s;

  void operator()(const double* __restrict u, const std::array<double*, 1>& given, std::int64_t k,
                  double* __restrict out, std::int64_t n) const {
    const double t = dt, r0 = r[0], r1 = r[1], r2 = r[D - 1];
    const double* const kappa = given[0] + k;
    const std::int64_t s0 = s[0], s1 = D == 2 ? 1 : s[1];
    for (std::int64_t x = 0; x < n; ++x) {
      double sum = r0 * flux(u + x, kappa + x, s0) + r1 * flux(u + x, kappa + x, s1);
      if constexpr (D == 3) sum = sum + r2 * flux(u + x, kappa + x, 1);
      out[x] = u[x] + t * sum;
    }
  }

 private:
  static double flux(const double* u, const double* kappa, std::int64_t d) {
    return (0.5 * (kappa[0] + kappa[d])) * (u[d] - u[0]) - (0.5 * (kappa[-d] + kappa[0])) * (u[0] - u[-d]);
  }
};

/// -laplace(u) = f, damped Jacobi steps; f given.
template <int D>
struct HandJacobiRow {
  PerDim<double, D> q;
  double omega, diagonal;
  Index<D> s;

  void operator()(const double* __restrict u, const std::array<double*, 1>& given, std::int64_t k,
                  double* __restrict out, std::int64_t n) const {
    const PerDim<double, D> c = q;
    const double w = omega, d = diagonal, *const f = given[0] + k;
    const Index<D> at = s;
    for (std::int64_t x = 0; x < n; ++x) out[x] = u[x] + (w * (f[x] + hand_laplace<D>(u + x, c, at))) / d;
  }
};

/// Chebyshev's semi-iteration; f given, u a step before where it writes.
template <int D>
struct HandChebyshevRow {
  PerDim<double, D> q;
  ChebyshevSteps steps;
  Index<D> s;

  void begin_step() { steps.next(); }
  void operator()(const double* __restrict u, const std::array<double*, 1>& given, std::int64_t k,
                  double* __restrict out, std::int64_t n) const {
    const PerDim<double, D> c = q;
    const double a = steps.change(), b = steps.residual(), *const f = given[0] + k;
    const Index<D> at = s;
    for (std::int64_t x = 0; x < n; ++x)
      out[x] = u[x] + (a * (u[x] - out[x]) + b * (f[x] + hand_laplace<D>(u + x, c, at)));
  }
};

/// Over-relaxation of every other cell, in place.
template <int D>
struct HandRedBlackRow {
  static constexpr bool kColours = true;
  PerDim<double, D> q;
  double weight;
  Index<D> s;

  void operator()(double* u, const double* __restrict f, std::int64_t n, std::int64_t first) const {
    const PerDim<double, D> c = q;
    const double w = weight;
    const Index<D> at = s;
    ISOHALO_INDEPENDENT
    for (std::int64_t x = first; x < n; x += 2) u[x] = u[x] + w * (f[x] + hand_laplace<D>(u + x, c, at));
  }
};

}  // namespace isohalo
