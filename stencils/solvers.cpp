#include "stencils/solvers.hpp"

namespace isohalo {

SolverKinds shipped_solvers() {
  SolverKinds kinds;
#define ISOHALO_ADD(name) add_##name(kinds);
  ISOHALO_SOLVERS(ISOHALO_ADD)
#undef ISOHALO_ADD
  return kinds;
}

}  // namespace isohalo
