#pragma once
/// The shipped solvers, by `solver.kind`. To add one: a file like solvers/gray_scott.hpp, a line in solvers.cpp.

#include "framework/run/solver.hpp"

namespace isohalo {

/// "stencil", "heat", "poisson" and "gray_scott" in 1 to 4 dimensions, "life" in 2.
SolverKinds shipped_solvers();

/// The makers behind them. Each reads its keys of [solver]; docs/model.md has their arithmetic.
template <int D>
std::unique_ptr<SolverModel<D>> make_stencil_model(Config& config, const GridSettings<D>& grid);
template <int D>
std::unique_ptr<SolverModel<D>> make_heat_model(Config& config, const GridSettings<D>& grid);
template <int D>
std::unique_ptr<SolverModel<D>> make_poisson_model(Config& config, const GridSettings<D>& grid);
template <int D>
std::unique_ptr<SolverModel<D>> make_life_model(Config& config, const GridSettings<D>& grid);

}  // namespace isohalo
