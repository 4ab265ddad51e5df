/// kind = "acoustics" (docs/model.md): p_t = -K div(v), rho v_t = -grad(p), with the pressure p in cells and the
/// velocities v0, v1, .. on faces, leapfrog.

#include <array>
#include <cmath>

#include "stencils/cell_solver.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {

namespace {

struct Acoustics {
  static constexpr auto fields = names("p");
  static constexpr auto faces = "v";
  static constexpr auto stable_dt_formula =
      "1 / (c sqrt(1/h_0^2 + 1/h_1^2 + ..)), c = sqrt(bulk_modulus / density)";
  template <int D>
  static constexpr auto coefficients() {
    return std::array{Coefficient{"density", "mass / length^d", "density rho in rho v_t = -grad(p)", 1.0}.above(0),
                      Coefficient{"bulk_modulus", "pressure", "bulk modulus K in p_t = -K div(v)", 1.0}.above(0)};
  }
  template <int D>
  double stable_dt(const Grid<D>& grid, const std::array<Extremes, 2>& given) const {
    double sum = 0;
    for (int j = 0; j < D; ++j) sum = sum + 1 / (grid.spacing[j] * grid.spacing[j]);
    return 1 / (std::sqrt(given[1].largest / given[0].least) * std::sqrt(sum));
  }

  template <class Face, class Sides, class Given>
  KOKKOS_FUNCTION double face(const Face& v, const Sides& p, const Given& given, double dt) const {
    const double density = 0.5 * (given[0].below() + given[0].above());
    return v() - v.over_spacing(dt / density) * (p.above() - p.below());
  }
  template <class Cell, class Faces, class Given>
  KOKKOS_FUNCTION double operator()(const Cell& p, const Faces& v, const Given& given, double dt) const {
    const double dt_modulus = dt * given[1]();
    return p() - sum_over_dimensions<Cell::dimensions>([&](int j) {
             const auto& along = v[static_cast<std::size_t>(j)];
             return along.over_spacing(dt_modulus) * (along.above() - along.below());
           });
  }
};

}  // namespace

void add_acoustics(SolverKinds& kinds) {
  add_solver<Acoustics>(kinds, "acoustics");
}

}  // namespace isohalo
