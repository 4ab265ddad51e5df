#pragma once
/// What the benchmarks share: medians, and times of the slowest rank.

#include <algorithm>
#include <chrono>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/// Seconds that the slowest rank needs for `work`, from a common start. Collective.
template <class F>
double timed(const Communicator& comm, F&& work) {
  using Clock = std::chrono::steady_clock;
  comm.barrier();
  const auto start = Clock::now();
  work();
  double s = std::chrono::duration<double>(Clock::now() - start).count();
  comm.allreduce(&s, 1, MPI_DOUBLE, MPI_MAX);
  return s;
}

}  // namespace isohalo
