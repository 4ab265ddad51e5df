#pragma once
/// isohalo::solver - a solver of your own in one file, with the whole command around it: add_solver and main.
#include <string>

#include "apps/isohalo/command_line.hpp"
#include "stencils/cell_solver.hpp"

namespace isohalo {

/// main of a program that is the isohalo command with S as one more value of solver.kind (see cell_solver.hpp).
template <class S>
int main(int argc, char** argv, const std::string& kind) {
  return run_command_line(argc, argv, kind, false, [&](SolverKinds& kinds) { add_solver<S>(kinds, kind); });
}

}  // namespace isohalo
