#pragma once
/// The command `isohalo`, for any solvers.

#include <functional>
#include <string>

#include "stencils/solvers.hpp"

namespace isohalo {

/// main's work: starts and ends MPI and Kokkos, and returns the exit code. `program`: its name in help and errors;
/// `add` adds solvers to the shipped ones before anything is started, and may throw; `bench`: isohalo-bench lies
/// beside the program.
int run_command_line(int argc, char** argv, const std::string& program, bool bench,
                     const std::function<void(SolverKinds&)>& add);

}  // namespace isohalo
