#pragma once
/// kind = "heat" where kappa is a field or some cells are masked: u_t = div(kappa grad(u)) (docs/model.md).

#include "stencils/cell_solver.hpp"

namespace isohalo {

struct HeatInField {
  static constexpr auto fields = names("u");
  template <int D>
  static constexpr auto coefficients() {
    return std::array{Coefficient{"kappa", "length^2 / time", "diffusivity", 1.0}.from(0)};
  }
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <int D>
  double stable_dt(const Grid<D>& grid, const std::array<double, 1>& largest) const {
    double sum = 0;
    for (int j = 0; j < D; ++j) sum = sum + 1 / (grid.spacing[j] * grid.spacing[j]);
    return 1 / ((2 * largest[0]) * sum);
  }
  template <class Cell, class Given>
  KOKKOS_FUNCTION double operator()(const Cell& u, const Given& given, double dt) const {
    const auto& kappa = given[0];
    return u() + dt * sum_over_dimensions<Cell::dimensions>([&](int j) {
                   const double above = (0.5 * (kappa() + kappa.near(j, 1))) * (u.near(j, 1) - u());
                   const double below = (0.5 * (kappa.near(j, -1) + kappa())) * (u() - u.near(j, -1));
                   return u.inverse_square(j) * (above - below);
                 });
  }
};

}  // namespace isohalo
