#include "stencils/solvers/advection.hpp"

#include "stencils/solvers.hpp"

namespace isohalo {

namespace {

template <int D>
std::unique_ptr<SolverModel<D>> make_advection_model(Config& config, const GridSettings<D>& grid) {
  const std::string method = config.text(
      "solver.method", {"upwind3", {"upwind", "upwind3"}, "first or third order, against the velocity"});
  if (method == "upwind") return detail::make_cell_model<AdvectionUpwind, D>(config, grid, "advection");
  return detail::make_cell_model<AdvectionUpwind3, D>(config, grid, "advection");
}

}  // namespace

void add_advection(SolverKinds& kinds) {
  kinds.of<1>()["advection"] = make_advection_model<1>;
  kinds.of<2>()["advection"] = make_advection_model<2>;
  kinds.of<3>()["advection"] = make_advection_model<3>;
  kinds.of<4>()["advection"] = make_advection_model<4>;
}

}  // namespace isohalo
