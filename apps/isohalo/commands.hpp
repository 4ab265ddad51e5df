#pragma once
/// The subcommands of `isohalo`. Each takes its parsed arguments, runs on all ranks and returns the agreed exit
/// code.

#include <mpi.h>

#include <string>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/run/run.hpp"

namespace isohalo {

ExitCode run_command(MPI_Comm comm, const RunRequest& request);
ExitCode compare_command(MPI_Comm comm, const std::string& a, const std::string& b);
ExitCode info_command(MPI_Comm comm, const std::string& file);

struct BenchSweepOptions {
  bool json = false;
  int repeats = 7;
  std::vector<std::string> cases;  ///< empty: all
};
ExitCode bench_sweep_command(MPI_Comm comm, const BenchSweepOptions& options);

struct BenchNeighborhoodOptions {
  bool json = false;
  int samples = 50;           ///< of each experiment
  double seconds_each = 0.2;  ///< at most, per experiment
  std::int64_t largest_block = 1 << 20;
  std::string plot_directory;  ///< empty: no plots
};
ExitCode bench_neighborhood_command(MPI_Comm comm, const BenchNeighborhoodOptions& options);
ExitCode bench_wait_command(MPI_Comm comm, bool json);

/// Throws UsageError when a launcher of another MPI started this program, so that every process believes to be
/// alone.
void refuse_foreign_launcher(int world_size);

}  // namespace isohalo
