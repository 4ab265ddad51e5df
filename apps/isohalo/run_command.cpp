#include <fmt/format.h>

#include "apps/isohalo/commands.hpp"
#include "datatypes/printable.hpp"
#include "framework/run/help.hpp"

namespace isohalo {

ExitCode run_command(MPI_Comm comm, const RunRequest& request, const SolverKinds& kinds) {
  run_input(comm, request, kinds);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (request.validate_only && rank == 0) fmt::print("{} is valid\n", printable(request.input));
  return ExitCode::fine;
}

ExitCode help_input_command(MPI_Comm comm, const RunRequest& request, bool markdown, const SolverKinds& kinds) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (!request.input.empty())
    show_input(comm, request, kinds);
  else if (rank == 0)
    fmt::print("{}", markdown ? help_input_markdown(kinds) : help_input(kinds));
  return ExitCode::fine;
}

}  // namespace isohalo
