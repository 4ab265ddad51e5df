#pragma once
/// What the benchmarks share: medians, times of the slowest rank, measurements in turns, and numbers to compute
/// with.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "datatypes/mix.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/// The median of so many measurements.
template <class F>
double median_of(int repeats, F&& measure) {
  std::vector<double> v;
  for (int k = 0; k < repeats; ++k) v.push_back(measure());
  return median(std::move(v));
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

/// The same for one of so many calls in a row. Collective.
template <class F>
double timed_calls(const Communicator& comm, std::int64_t count, F&& call) {
  return timed(comm,
               [&] {
                 for (std::int64_t k = 0; k < count; ++k) call();
               }) /
         static_cast<double>(count);
}

/// The same on this rank alone. Local.
template <class F>
double looped_calls(int count, F&& call) {
  const double start = MPI_Wtime();
  for (int k = 0; k < count; ++k) call();
  return (MPI_Wtime() - start) / count;
}
/// From a common start, but nothing synchronises the calls. Collective.
template <class F>
double looped_calls(const Communicator& comm, int count, F&& call) {
  comm.barrier();
  return looped_calls(count, call);
}
/// How many calls of `each` seconds take `total`, but not below 3: the first are no promise. Local.
inline int calls_in(double total, double each, double most) {
  return static_cast<int>(std::clamp(total / std::max(each, 1e-8), 3.0, most));
}
/// The same of the ranks that need longest. Collective.
inline int calls_in(const Communicator& comm, double total, double each, double most) {
  int n = calls_in(total, each, most);
  comm.allreduce(&n, 1, MPI_INT, MPI_MIN);
  return n;
}

/// Measurements of several ways to do the same, in turns, A B C A B C .., so that all see the same weather.
class Turns {
 public:
  Turns() = default;
  /// A way returns what it measures. Collective where they are.
  Turns(int repeats, const std::vector<std::function<double()>>& ways) {
    for (int k = 0; k < repeats; ++k) {
      std::vector<double> round;
      for (const auto& way : ways) round.push_back(way());
      add(std::move(round));
    }
  }
  void add(std::vector<double> round) { rounds_.push_back(std::move(round)); }

  std::vector<double> of(std::size_t way) const {
    std::vector<double> v;
    for (const auto& round : rounds_) v.push_back(round[way]);
    return v;
  }
  double middle(std::size_t way) const { return median(of(way)); }
  /// One way over another, the median of the rounds.
  double ratio(std::size_t way, std::size_t other) const {
    std::vector<double> v;
    for (const auto& round : rounds_) v.push_back(round[way] / round[other]);
    return median(std::move(v));
  }

 private:
  std::vector<std::vector<double>> rounds_;
};

/// A number in [0, 1) for each n, as if by chance.
inline double number_of(std::uint64_t n) {
  return static_cast<double>(mix64(n) >> 11) * 0x1p-53;
}

}  // namespace isohalo
