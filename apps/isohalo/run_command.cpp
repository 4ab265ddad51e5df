#include <fmt/format.h>

#include "apps/isohalo/commands.hpp"
#include "datatypes/printable.hpp"
#include "framework/run/help.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {

ExitCode run_command(MPI_Comm comm, const RunRequest& request) {
  run_input(comm, request, shipped_solvers());
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (request.validate_only && rank == 0) fmt::print("{} is valid\n", printable(request.input));
  return ExitCode::fine;
}

ExitCode help_input_command(MPI_Comm comm, const RunRequest& request, bool markdown) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (!request.input.empty())
    show_input(comm, request, shipped_solvers());
  else if (rank == 0)
    fmt::print("{}", markdown ? help_input_markdown(shipped_solvers()) : help_input(shipped_solvers()));
  return ExitCode::fine;
}

}  // namespace isohalo
