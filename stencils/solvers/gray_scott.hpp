#pragma once
/// kind = "gray_scott": two substances that diffuse; u is fed and turned into v, v goes (docs/model.md).
///
/// Source: Gray, Scott 1984, "Autocatalytic reactions in the isothermal, continuous stirred tank reactor";
/// patterns: Pearson 1993, "Complex patterns in a simple system".

#include <algorithm>

#include "stencils/cell_solver.hpp"

namespace isohalo {

struct GrayScott {
  double Du = 2e-5, Dv = 1e-5, F = 0.04, k = 0.06;

  static constexpr auto fields = names("u", "v");
  static constexpr auto keys =
      isohalo::keys(key(&GrayScott::Du, "Du", "length^2 / time", "diffusivity of u").from(0),
                    key(&GrayScott::Dv, "Dv", "length^2 / time", "diffusivity of v").from(0),
                    key(&GrayScott::F, "F", "1 / time", "rate at which u is fed, and both are washed out").from(0),
                    key(&GrayScott::k, "k", "1 / time", "rate at which v goes, besides F").from(0));

  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  /// Of diffusion and of the linear terms.
  template <int D>
  double stable_dt(const Grid<D>& grid) const {
    double sum = 0;
    for (int j = 0; j < D; ++j) sum = sum + 1 / (grid.spacing[j] * grid.spacing[j]);
    return 1 / (2 * std::max(Du, Dv) * sum + (F + k));
  }
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& v, double dt) const {
    const double uvv = u() * (v() * v());
    return cells(u() + dt * ((Du * laplace(u) - uvv) + F * (1 - u())),
                 v() + dt * ((Dv * laplace(v) + uvv) - (F + k) * v()));
  }
};

}  // namespace isohalo
