#pragma once
/// The benchmarks of `isohalo-bench`. Each measures on all ranks, prints on rank 0, and returns the agreed exit
/// code: ExitCode::different when what was timed was not right.

#include <mpi.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "datatypes/error.hpp"

namespace isohalo {

struct BenchOptions {
  bool json = false;
};
ExitCode bench_datatypes(MPI_Comm comm, const BenchOptions& options);
ExitCode bench_wait(MPI_Comm comm, const BenchOptions& options);

/// Of benchmarks of steps on grids.
struct BenchStepsOptions : BenchOptions {
  int repeats = 7;
  std::int64_t size = 0;           ///< cells per dimension; 0: far more than caches hold
  std::vector<std::string> cases;  ///< empty: all
};
ExitCode bench_cg(MPI_Comm comm, const BenchStepsOptions& options);

struct BenchSweepOptions : BenchStepsOptions {
  std::string space = "host";  ///< or "device"
};
ExitCode bench_sweep(MPI_Comm comm, const BenchSweepOptions& options);

struct BenchTemporalOptions : BenchStepsOptions {
  std::set<int> depths{4, 8, 16};  ///< steps per exchange
  std::vector<std::int64_t> tile;  ///< of those; empty: chosen
};
ExitCode bench_temporal(MPI_Comm comm, const BenchTemporalOptions& options);

struct BenchDepthOptions : BenchStepsOptions {  ///< size 0: several
  BenchDepthOptions() { repeats = 5; }
  std::set<int> depths{1, 2, 4, 8, 16};  ///< that are forced
};
ExitCode bench_depth(MPI_Comm comm, const BenchDepthOptions& options);

struct BenchExchangeOptions : BenchStepsOptions {
  BenchExchangeOptions() { size = 256; }  ///< of the cubes
};
ExitCode bench_exchange(MPI_Comm comm, const BenchExchangeOptions& options);

struct BenchScalingOptions : BenchOptions {
  int repeats = 7;
  double seconds_each = 0.05;                               ///< about, of a measurement
  std::set<int> ranks;                                      ///< empty: powers of two, and all
  std::set<std::int64_t> blocks{16, 32, 48, 64, 128, 192};  ///< cells of a rank per dimension, weak scaling
  std::set<std::int64_t> grids{64, 256};                    ///< cells per dimension, strong scaling
  std::vector<std::string> with;                            ///< files of earlier points, as JSON
  int residual_every = 10;                                  ///< of what is extrapolated, as the next ones
  std::int64_t weak_block = 128, strong_grid = 4096;
  double latency_us = 0, gb_per_s = 0;  ///< of a network; 0: as fitted
  std::string plot_directory;           ///< empty: no plots
};
ExitCode bench_scaling(MPI_Comm comm, const BenchScalingOptions& options);

struct BenchFileOptions : BenchOptions {
  int repeats = 7;
  std::int64_t mib = 512;          ///< per file
  std::string directory = "/tmp";  ///< where a directory for the files is made
};
ExitCode bench_compare(MPI_Comm comm, const BenchFileOptions& options);
ExitCode bench_checkpoint(MPI_Comm comm, const BenchFileOptions& options);

struct BenchNeighborhoodOptions : BenchOptions {
  int samples = 50;           ///< of each experiment
  double seconds_each = 0.2;  ///< at most, per experiment
  std::int64_t largest_block = 1 << 20;
  int order = 10000;           ///< of the matrix of Fig. 8
  std::string plot_directory;  ///< empty: no plots
};
ExitCode bench_neighborhood(MPI_Comm comm, const BenchNeighborhoodOptions& options);

struct BenchAllreduceOptions : BenchOptions {
  int repeats = 7;
  bool local = false;   ///< the local pass too
  bool arrays = false;  ///< arrays as in Stelz 2022
  std::string emulate;  ///< "2ms,0.2ms"; empty: no
};
ExitCode bench_allreduce(MPI_Comm comm, const BenchAllreduceOptions& options);

struct BenchMulticastOptions : BenchOptions {
  int samples = 200;           ///< of each case
  double seconds = 20;         ///< in all, about
  std::string plot_directory;  ///< empty: no plots
};
ExitCode bench_multicast(MPI_Comm comm, const BenchMulticastOptions& options);

struct BenchCollectivesOptions : BenchOptions {
  int repeats = 15;
  std::size_t largest = std::size_t{4} << 20;  ///< bytes
  bool model = false;                          ///< algorithms, predicted and measured
  std::string hierarchy;                       ///< such as 2x4; empty: this machine's
  std::string plot_directory;                  ///< empty: no plots
};
ExitCode bench_collectives(MPI_Comm comm, const BenchCollectivesOptions& options);
/// Of `model`.
ExitCode bench_collectives_model(MPI_Comm comm, const BenchCollectivesOptions& options);

struct BenchWorkloadsOptions : BenchOptions {
  int repeats = 3;
  std::vector<std::string> cases;  ///< empty: all
  std::size_t rows = 49152, columns = 4096;
  int iterations = 128;                        ///< products of the matrix and a vector
  std::int64_t bodies = 4000000;               ///< in all
  std::int64_t most = 10000;                   ///< bodies in a cell
  std::size_t largest = std::size_t{4} << 20;  ///< bytes of a reduce against OpenMP
};
ExitCode bench_workloads(MPI_Comm comm, const BenchWorkloadsOptions& options);

}  // namespace isohalo
