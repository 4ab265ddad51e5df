#pragma once
/// kind = "advection": u_t + v . grad(u) = 0 with a velocity that is given (docs/model.md).

#include <cmath>

#include "stencils/cell_solver.hpp"

namespace isohalo {

/// What both methods have: the velocity, one coefficient for each dimension.
struct Advection {
  static constexpr auto fields = names("u");
  template <int D>
  static constexpr auto coefficients() {
    constexpr std::array<const char*, 4> names{"v0", "v1", "v2", "v3"};
    constexpr std::array<const char*, 4> helps{"velocity along dimension 0", "velocity along dimension 1",
                                               "velocity along dimension 2", "velocity along dimension 3"};
    std::array<Coefficient, D> all{};
    for (std::size_t j = 0; j < D; ++j) all[j] = Coefficient{names[j], "length / time", helps[j], 0.0};
    return all;
  }
  template <int D>
  double stable_dt(const Grid<D>& grid, const std::array<double, D>& largest) const {
    double sum = 0;
    for (int j = 0; j < D; ++j) sum = sum + largest[static_cast<std::size_t>(j)] / grid.spacing[j];
    return 1 / sum;
  }
};

/// method = "upwind": first order.
struct AdvectionUpwind : Advection {
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <class Cell, class Given>
  KOKKOS_FUNCTION double operator()(const Cell& u, const Given& v, double dt) const {
    return u() - dt * sum_over_dimensions<Cell::dimensions>([&](int j) {
                   const double along = v[static_cast<std::size_t>(j)]();
                   return along * upwind_slope(u, j, along);
                 });
  }
};

/// method = "upwind3": third-order upwind-biased differences, three-stage Runge-Kutta. Source: Shu, Osher 1988,
/// "Efficient implementation of essentially non-oscillatory shock-capturing schemes", (2.18).
struct AdvectionUpwind3 : Advection {
  static constexpr int stages = 3;
  static constexpr std::array stage_times{0.0, 1.0, 0.5};

  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(2);
  }
  template <int K, class Cell, class Given>
  KOKKOS_FUNCTION double stage(const Cell& u, const Cell& u_begin, const Given& v, double dt) const {
    const double euler = u() - dt * sum_over_dimensions<Cell::dimensions>([&](int j) {
                                 const auto& along = v[static_cast<std::size_t>(j)];
                                 return along() * biased_slope(u, j, along);
                               });
    if constexpr (K == 0)
      return euler;
    else if constexpr (K == 1)
      return 0.75 * u_begin() + 0.25 * euler;
    else
      return (1.0 / 3.0) * u_begin() + (2.0 / 3.0) * euler;
  }
  template <int K>
  KOKKOS_FUNCTION double source_weight(double dt) const {
    return K == 0 ? dt : K == 1 ? 0.25 * dt : (2.0 / 3.0) * dt;
  }
};

}  // namespace isohalo
