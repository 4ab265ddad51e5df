/// Two substances that react and diffuse, the Brusselator:
/// u_t = Du lap(u) + A - (B + 1) u + u^2 v, v_t = Dv lap(v) + B u - u^2 v.

#include <algorithm>
#include <isohalo/solver.hpp>

struct Brusselator {
  double Du = 1, Dv = 8, A = 4.5, B = 7.5;

  static constexpr auto fields = isohalo::names("u", "v");
  static constexpr auto keys =
      isohalo::keys(isohalo::key(&Brusselator::Du, "Du", "length^2 / time", "diffusivity of u").from(0),
                    isohalo::key(&Brusselator::Dv, "Dv", "length^2 / time", "diffusivity of v").from(0),
                    isohalo::key(&Brusselator::A, "A", "1 / time", "supply of u"),
                    isohalo::key(&Brusselator::B, "B", "1 / time", "rate at which u becomes v"));

  template <int D>
  isohalo::StencilShape<D> shape() const {
    return isohalo::StencilShape<D>::star(1);
  }
  template <int D>
  double stable_dt(const isohalo::Grid<D>& grid) const {
    double sum = 0;
    for (int j = 0; j < D; ++j) sum += 1 / (grid.spacing[j] * grid.spacing[j]);
    return 1 / (2 * std::max(Du, Dv) * sum + B + 1 + A * A);
  }
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& v, double dt) const {
    const double uuv = (u() * u()) * v();
    return isohalo::cells(u() + dt * (((Du * laplace(u) + A) - (B + 1) * u()) + uuv),
                          v() + dt * ((Dv * laplace(v) + B * u()) - uuv));
  }
};

int main(int argc, char** argv) {
  return isohalo::main<Brusselator>(argc, argv, "brusselator");
}
