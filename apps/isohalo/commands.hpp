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

ExitCode run_command(MPI_Comm comm, const RunRequest& request);
ExitCode help_input_command(MPI_Comm comm, const RunRequest& request, bool markdown);
ExitCode compare_command(MPI_Comm comm, const CompareRequest& request);
ExitCode info_command(MPI_Comm comm, const std::string& file, bool numpy);
ExitCode verify_command(MPI_Comm comm, const std::string& file);
struct VerifyLiveOptions {
  bool json = false;
  std::string broken;  ///< a check that is spoilt on purpose; empty: none
  double time_limit_s = 600;
};
ExitCode verify_live_command(MPI_Comm comm, const VerifyLiveOptions& options);

struct BenchSweepOptions {
  bool json = false;
  int repeats = 7;
  std::vector<std::string> cases;  ///< empty: all
};
ExitCode bench_sweep_command(MPI_Comm comm, const BenchSweepOptions& options);

struct BenchFileOptions {
  bool json = false;
  int repeats = 7;
  std::int64_t mib = 512;          ///< per file
  std::string directory = "/tmp";  ///< where a directory for the files is made
};
ExitCode bench_compare_command(MPI_Comm comm, const BenchFileOptions& options);
ExitCode bench_checkpoint_command(MPI_Comm comm, const BenchFileOptions& options);

struct ProveRequest {
  std::string input;
  std::vector<std::string> overrides;
  std::vector<int> ranks{1, 2, 3, 6};
  std::string mpiexec = ISOHALO_MPIEXEC;
  std::string directory;  ///< empty: one that is removed
};
ExitCode prove_command(MPI_Comm comm, const ProveRequest& request);

struct BenchNeighborhoodOptions {
  bool json = false;
  int samples = 50;           ///< of each experiment
  double seconds_each = 0.2;  ///< at most, per experiment
  std::int64_t largest_block = 1 << 20;
  int order = 10000;           ///< of the matrix of Fig. 8
  std::string plot_directory;  ///< empty: no plots
};
ExitCode bench_neighborhood_command(MPI_Comm comm, const BenchNeighborhoodOptions& options);
struct BenchExchangeOptions {
  bool json = false;
  int repeats = 7;
  std::int64_t size = 256;         ///< cells per dimension of the cubes
  std::vector<std::string> cases;  ///< empty: all
};
ExitCode bench_exchange_command(MPI_Comm comm, const BenchExchangeOptions& options);
ExitCode bench_datatypes_command(MPI_Comm comm, bool json);
struct BenchAllreduceOptions {
  bool json = false;
  int repeats = 7;
  bool local = false;   ///< the local pass too
  bool arrays = false;  ///< arrays as in Stelz 2022
  std::string emulate;  ///< "2ms,0.2ms"; empty: no
};
ExitCode bench_allreduce_command(MPI_Comm comm, const BenchAllreduceOptions& options);
struct BenchMulticastOptions {
  bool json = false;
  int samples = 200;           ///< of each case
  double seconds = 20;         ///< in all, about
  std::string emulate;         ///< "2ms,0.2ms"; empty: no
  std::string plot_directory;  ///< empty: no plots
};
ExitCode bench_multicast_command(MPI_Comm comm, const BenchMulticastOptions& options);
ExitCode bench_wait_command(MPI_Comm comm, bool json);

/// To be called before MPI_Init: one line on standard error, from the lowest rank of a node, when /dev/shm has less
/// room than MPI_Init takes.
void warn_of_little_shared_memory();

/// Throws UsageError when a launcher of another MPI started this program, so that every process believes to be
/// alone.
void refuse_foreign_launcher(int world_size);

}  // namespace isohalo
