#pragma once
/// One run of an input: configuration, stepping loop, checkpoints, pictures, final lines.

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "framework/run/solver.hpp"
#include "framework/schedule/traffic.hpp"

namespace isohalo {

struct RunRequest {
  std::string input;                   ///< path of the TOML input
  std::vector<std::string> overrides;  ///< key=value
  std::string restart;                 ///< empty, "auto" or a file
  bool overwrite = false;
  bool validate_only = false;
  bool plan = false;           ///< print what a run would look like and stop
  int plan_ranks = 0;          ///< on so many ranks; 0: on those that are there
  bool quiet = false;          ///< nothing on standard output
  bool watch_signals = false;  ///< answer SIGTERM, SIGINT and SIGUSR1 with a checkpoint
  std::vector<std::string> command_line;
};

/// What a run leaves behind, the same on all ranks.
struct RunResult {
  std::int64_t step = 0;
  double change_sum = 0, residual = 0;
  std::int64_t residual_step = 0;
  std::vector<std::pair<std::string, std::string>> digests;  ///< field, 16 hex digits
  int stop_signal = 0;                                       ///< that ended the run early, 0 if none
  double rate = 0;                                           ///< million cell updates per second
};

/// Runs the input on `comm`. Kokkos must be initialised. Collective. Throws Error, the same on all ranks.
RunResult run_input(MPI_Comm comm, const RunRequest& request, const SolverKinds& kinds);

/// What all ranks send in an exchange, by one pattern of messages: "direct", "coalesced" or "slabs".
struct PatternTraffic {
  std::string pattern;
  TrafficTable traffic;
};

/// The halo exchanges of the input on `request.plan_ranks` ranks, by every pattern that its stencil
/// allows. Collective. Throws Error, the same on all ranks.
std::vector<PatternTraffic> halos_of_input(MPI_Comm comm, const RunRequest& request, const SolverKinds& kinds);

/// Prints the keys of the input and their values in force, then throws the errors that it has. Collective. Throws
/// Error, the same on all ranks.
void show_input(MPI_Comm comm, const RunRequest& request, const SolverKinds& kinds);

}  // namespace isohalo
