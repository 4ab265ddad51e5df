#pragma once
/// kind = "wave": u_tt + sigma u_t = c^2 laplace(u), leapfrog, second order in time and space (docs/model.md).
///
/// The absorbing layer is a sponge: sigma grows with the square of the depth in it. Source: Israeli, Orszag 1981,
/// "Approximation of radiation boundary conditions", section 4.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "stencils/cell_solver.hpp"

namespace isohalo {

struct Wave {
  double layer = 0, damping = 0;

  static constexpr auto fields = names("u");
  static constexpr auto before = names("u_before");
  static constexpr bool branches = true;  // where it divides, on devices
  static constexpr auto keys = isohalo::keys(
      key(&Wave::layer, "layer", "length", "width of the absorbing layer inside every side that is not periodic")
          .from(0),
      key(&Wave::damping, "damping", "1 / time", "sigma at the outer end of the absorbing layer").from(0));
  template <int D>
  static constexpr auto coefficients() {
    return std::array{
        Coefficient{"c", "length / time", "wave speed", 1.0}.from(0),
        Coefficient{"sigma", "1 / time", "damping; 0: that of the layer, if there is one", 0.0}.from(0)};
  }

  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <int D>
  double stable_dt(const Grid<D>& grid, const std::array<double, 2>& largest) const {
    double sum = 0;
    for (int j = 0; j < D; ++j) sum = sum + 1 / (grid.spacing[j] * grid.spacing[j]);
    return 1 / (largest[0] * std::sqrt(sum));
  }
  double largest(std::size_t) const { return damping; }
  /// sigma in the layer.
  template <int D>
  std::function<double(const Index<D>&)> formula(std::size_t k, const Grid<D>& grid) const {
    if (k != 1 || layer <= 0 || damping <= 0) return {};
    return [layer = layer, damping = damping, grid](const Index<D>& i) {
      double distance = std::numeric_limits<double>::infinity();  // to the nearest side that is not periodic
      for (int j = 0; j < D; ++j) {
        if (grid.boundary.low[j].kind == Boundary::periodic) continue;
        const double x = (static_cast<double>(i[j]) + 0.5) * grid.spacing[j];
        distance = std::min({distance, x, grid.length[j] - x});
      }
      if (!(distance < layer)) return 0.0;
      const double w = (layer - distance) / layer;
      return damping * (w * w);
    };
  }

  template <class Cell, class Given>
  KOKKOS_FUNCTION double operator()(const Cell& u, const Cell& u_before, const Given& given, double dt) const {
    const double c = given[0](), s = 0.5 * (given[1]() * dt);
    return divided((2.0 * u() - (1.0 - s) * u_before()) + (dt * dt) * ((c * c) * laplace(u)), 1.0 + s);
  }
  /// At rest: the Taylor series to second order.
  template <class Cell, class Given>
  KOKKOS_FUNCTION double begin(const Cell& u, const Given& given, double dt) const {
    const double c = given[0]();
    return u() + (0.5 * (dt * dt)) * ((c * c) * laplace(u));
  }
  /// Of a source f, u_tt + sigma u_t = c^2 laplace(u) + f.
  template <int K, class Given>
  KOKKOS_FUNCTION double source_weight(const Given& given, double dt) const {
    if constexpr (K < 0)
      return 0.5 * (dt * dt);
    else
      return (dt * dt) / (1.0 + 0.5 * (given[1]() * dt));
  }
};

}  // namespace isohalo
