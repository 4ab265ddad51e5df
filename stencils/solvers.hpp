#pragma once
/// The shipped solvers, by `solver.kind`. To add one: files like solvers/gray_scott.{hpp,cpp}, a line here and in
/// solvers.cpp.

#include "framework/run/solver.hpp"

namespace isohalo {

/// "acoustics", "advection", "gray_scott", "heat", "poisson", "stencil" and "wave" in 1 to 4 dimensions, "life"
/// in 2.
SolverKinds shipped_solvers();

void add_acoustics(SolverKinds& kinds);
void add_advection(SolverKinds& kinds);
void add_gray_scott(SolverKinds& kinds);
void add_wave(SolverKinds& kinds);

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
