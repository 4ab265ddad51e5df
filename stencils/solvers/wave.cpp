#include "stencils/solvers/wave.hpp"

#include "stencils/solvers.hpp"

namespace isohalo {

void add_wave(SolverKinds& kinds) {
  add_solver<Wave>(kinds, "wave");
}

}  // namespace isohalo
