#pragma once
/// `isohalo schedule`: schedules of an allreduce, planned, enumerated and simulated in this process.

#include <mpi.h>

#include <CLI/CLI.hpp>
#include <string>

#include "datatypes/error.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/run/solver.hpp"
#include "framework/simulate/simulator.hpp"

namespace isohalo {

/// What the command line asks for. Times in nanoseconds.
struct ScheduleRequest {
  int ranks = 0;
  bool best = false, enumerate = false, table2 = false, json = false;
  bool measure = false;  ///< on the ranks of this job; `ranks` is 0 or their number
  bool elimination = false, for_sets = false, rank_order = false;
  int most_sends = 0, most_stages = 0;
  int candidates = 1;  ///< of how many that are cheap by the model the one that simulates fastest is taken
  std::string text;    ///< of --simulate
  bool simulate = false;
  std::string table, machine;  ///< file of --table and the machine to look for; empty: this one
  std::string halo;            ///< input file of --halo
  std::string neighborhood;    ///< of --neighborhood
  std::vector<int> mesh;
  std::string model = "pipelining", topology, svg, goal;
  SimulationOptions options;
};

/// Declares the subcommand and its options; they are parsed into `request`, which must outlive `app`.
CLI::App* add_schedule_command(CLI::App& app, ScheduleRequest& request);

/// The work is done by rank 0 of `comm`, which prints; all ranks get the same exit code. Collective.
ExitCode schedule_command(MPI_Comm comm, const ScheduleRequest& request, const SolverKinds& kinds);

/// --measure: message costs between the ranks of `comm` and the times of the schedules that are best by them;
/// enters the best into the request's table, if it names one. Rank 0 prints. Collective. Throws UsageError on all
/// ranks.
void measure_schedules(const Communicator& comm, const ScheduleRequest& request);

/// --halo and --neighborhood: rounds, messages, bytes and simulated time of a halo exchange by every pattern, or of
/// an isomorphic alltoall by every algorithm. Rank 0 prints. Collective. Throws Error, the same on all ranks.
void report_exchanges(const Communicator& comm, const ScheduleRequest& request, const SimulationOptions& options,
                      const SolverKinds& kinds);

/// The report of Ruefenacht, Bull, Booth 2017, Table 2: the times that the cost model gives to recursive doubling,
/// to the paper's schedule and to our best one, beside the ratio that the paper measured. Prints.
void report_table2(bool json);

}  // namespace isohalo
