#pragma once
/// The shipped solvers, by `solver.kind`. To add one: a file solvers/NAME.cpp with `add_NAME`, and NAME in this
/// list.

#include "framework/run/solver.hpp"

#define ISOHALO_SOLVERS(macro)                                                                              \
  macro(acoustics) macro(advection) macro(gray_scott) macro(heat) macro(life) macro(poisson) macro(stencil) \
      macro(wave)

namespace isohalo {

/// All of them in 1 to 4 dimensions, "life" in 2. docs/model.md has their arithmetic.
SolverKinds shipped_solvers();

#define ISOHALO_DECLARE(name) void add_##name(SolverKinds& kinds);
ISOHALO_SOLVERS(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

}  // namespace isohalo
