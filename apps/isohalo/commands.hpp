#pragma once
/// The subcommands of `isohalo`. Each takes its parsed arguments, runs on all ranks and returns the agreed exit
/// code.

#include <mpi.h>

#include <string>
#include <vector>

#include "apps/isohalo/compare_options.hpp"
#include "datatypes/error.hpp"
#include "framework/run/run.hpp"

namespace isohalo {

ExitCode run_command(MPI_Comm comm, const RunRequest& request, const SolverKinds& kinds);
ExitCode help_input_command(MPI_Comm comm, const RunRequest& request, bool markdown, const SolverKinds& kinds);
ExitCode compare_command(MPI_Comm comm, const CompareRequest& request);
ExitCode info_command(MPI_Comm comm, const std::string& file, bool numpy);
ExitCode verify_command(MPI_Comm comm, const std::string& file);
struct VerifyLiveOptions {
  bool json = false;
  std::string broken;  ///< a check that is spoilt on purpose; empty: none
  double time_limit_s = 600;
};
ExitCode verify_live_command(MPI_Comm comm, const VerifyLiveOptions& options);

struct ProveRequest {
  std::string input;
  std::vector<std::string> overrides;
  std::vector<int> ranks{1, 2, 3, 6};
  std::string mpiexec = ISOHALO_MPIEXEC;
  std::string directory;  ///< empty: one that is removed
};
ExitCode prove_command(MPI_Comm comm, const ProveRequest& request);

}  // namespace isohalo
