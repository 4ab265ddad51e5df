#pragma once
/// What the workloads of `isohalo bench workloads` share: the collectives that they call, and their comparison.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/benchmarks.hpp"
#include "apps/common/report.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/shm/collectives.hpp"

namespace isohalo {

/// Ours on all ranks, in groups as `hierarchy` says (empty: as this machine has them). Throws UsageError, which
/// names the benchmark, where that cannot be. Collective.
std::unique_ptr<NodeCollectives> node_collectives(const Communicator& comm, const std::string& bench,
                                                  const std::string& hierarchy = "");

/// The blocking collectives that the workloads call, MPI's or ours: one code runs with both. The root is rank 0.
/// Collective.
class WorkloadCollectives {
 public:
  /// `node` null: MPI's. Both must live as long.
  WorkloadCollectives(MPI_Comm comm, NodeCollectives* node);

  /// `count` numbers for each rank, in the order of ranks in `all` of the root.
  void scatter(const double* all, std::size_t count, double* mine);
  void broadcast(double* data, std::size_t count);
  void reduce(const double* mine, double* sum, std::size_t count);
  void allreduce(const std::int64_t* mine, std::int64_t* sum, std::size_t count);

 private:
  MPI_Comm comm_;
  NodeCollectives* node_;
  Combine doubles_, integers_;
};

/// The two sides of a workload on the same ranks.
struct WorkloadSides {
  const Communicator& comm;
  WorkloadCollectives ours, mpi;
  int repeats;
};

/// Runs both sides in turn, the first of them in turn too. `run` returns the seconds of the phases in the order of
/// `names`, the same on all ranks; medians. Collective.
Json compare_sides(WorkloadSides& sides, const std::vector<std::string>& names,
                   const std::function<std::vector<double>(WorkloadCollectives&)>& run);

/// Seconds since `start` of MPI_Wtime are added up, for a phase that is spread over a run.
class Stopwatch {
 public:
  template <class F>
  void operator()(F&& work) {
    const double start = MPI_Wtime();
    work();
    seconds_ += MPI_Wtime() - start;
  }
  /// On the rank that needed longest. Collective.
  double slowest(const Communicator& comm) const {
    double s = seconds_;
    comm.allreduce(&s, 1, MPI_DOUBLE, MPI_MAX);
    return s;
  }

 private:
  double seconds_ = 0;
};

/// The workloads: what they were, their figures and whether all results were "right". Collective; the same on all
/// ranks.
Json run_matvec(WorkloadSides& sides, const BenchWorkloadsOptions& options);
Json run_barnes_hut(WorkloadSides& sides, const BenchWorkloadsOptions& options);
Json run_openmp_reduce(WorkloadSides& sides, const BenchWorkloadsOptions& options);

}  // namespace isohalo
