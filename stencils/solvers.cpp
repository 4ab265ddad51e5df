#include "stencils/solvers.hpp"

namespace isohalo {

namespace {

template <int D>
void add(SolverKinds& kinds) {
  kinds.of<D>()["stencil"] = make_stencil_model<D>;
  kinds.of<D>()["heat"] = make_heat_model<D>;
  kinds.of<D>()["poisson"] = make_poisson_model<D>;
  kinds.of<D>()["life"] = make_life_model<D>;
}

}  // namespace

SolverKinds shipped_solvers() {
  SolverKinds kinds;
  add<1>(kinds);
  add<2>(kinds);
  add<3>(kinds);
  add<4>(kinds);
  kinds.types["life"] = {"uint8"};
  add_acoustics(kinds);
  add_advection(kinds);
  add_gray_scott(kinds);
  add_wave(kinds);
  return kinds;
}

}  // namespace isohalo
