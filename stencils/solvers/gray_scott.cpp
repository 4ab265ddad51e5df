#include "stencils/solvers/gray_scott.hpp"

#include "stencils/solvers.hpp"

namespace isohalo {

void add_gray_scott(SolverKinds& kinds) {
  add_solver<GrayScott>(kinds, "gray_scott");
}

}  // namespace isohalo
