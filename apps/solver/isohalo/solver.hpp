#pragma once
/// isohalo::solver - a solver of your own in one file, with the whole command around it: add_solver and main.
#include <string>
#include <vector>

#include "apps/isohalo/command_line.hpp"
#include "stencils/cell_solver.hpp"

namespace isohalo {

/// main of a program that is the isohalo command with S as one more value of solver.kind (see cell_solver.hpp), and
/// with boundary rules of one's own.
template <class S>
int main(int argc, char** argv, const std::string& kind, const std::vector<BoundaryKind>& rules = {}) {
  return run_command_line(argc, argv, kind, false, [&](SolverKinds& kinds) {
    add_solver<S>(kinds, kind);
    for (const BoundaryKind& rule : rules) add_boundary_rule(kinds, rule);
  });
}

}  // namespace isohalo
