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
  kinds.add("advection",
            []<int D>(Config& config, const GridSettings<D>& grid) { return make_advection_model(config, grid); });
}

}  // namespace isohalo
