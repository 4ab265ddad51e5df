/// Reduce over the ranks against OpenMP's reduction of an array over as many threads of rank 0.
///
/// Source: Li, Hoefler, Snir 2013, section 3.5 and Fig. 20 (in Fortran there, because C had no such reduction).

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "apps/bench/timing.hpp"
#include "apps/bench/workloads.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/agreement.hpp"
#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#endif

namespace isohalo {

namespace {

/// What rank or thread t gives: whole numbers, whose sums are exact.
void fill(double* v, std::size_t n, int t) {
  for (std::size_t i = 0; i < n; ++i) v[i] = t + 1.0 + static_cast<double>(i % 7);
}
bool is_sum(const std::vector<double>& v, std::size_t n, int p) {
  bool same = true;
  for (std::size_t i = 0; i < n; ++i) same &= v[i] == p * (p + 1) / 2.0 + p * static_cast<double>(i % 7);
  return same;
}

/// Of the calls in a loop: few, because the first are no promise where others want the cores too.
constexpr double kLoop_s = 0.004, kMostCalls = 2000;

/// Of one call in an unsynchronised loop, on rank 0, which is the root. Collective.
template <class Call>
double seconds_on_all(const Communicator& comm, const Call& call) {
  const int count = calls_in(comm, kLoop_s, looped_calls(comm, 5, call), kMostCalls);
  double s = looped_calls(comm, count, call);
  comm.broadcast(&s, sizeof s, 0);
  return s;
}

/// `work` on rank 0 while the others sleep: one that polled would take a core from its threads. Collective.
template <class Work>
void on_root_alone(const Communicator& comm, const Work& work) {
  constexpr useconds_t kSleep_us = 2000;
  if (comm.rank() == 0) work();
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Ibarrier(comm.get(), &request), "MPI_Ibarrier", comm.get());
  for (int done = 0; !done;) {
    mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test", comm.get());
    if (!done && comm.rank() != 0) usleep(kSleep_us);
  }
}

#ifdef _OPENMP
/// Threads of this process, each with a vector of its own.
class Threads {
 public:
  Threads(int p, std::size_t n) : p_(p), room_(n), parts_(static_cast<std::size_t>(p)), sum_(n) {
    std::size_t stack = ~std::size_t{0};
#pragma omp parallel for num_threads(p_) schedule(static, 1) reduction(min : stack)
    for (int t = 0; t < p_; ++t) {
      parts_[static_cast<std::size_t>(t)].resize(n);  // its memory is near the thread that first writes it
      fill(parts_[static_cast<std::size_t>(t)].data(), n, t);
      stack = std::min(stack, stack_bytes());
    }
    // Compilers keep the copy of a thread on its stack.
    room_ = std::min(n, stack / 2 / sizeof(double));
  }
  /// Numbers that the threads' stacks have room for.
  std::size_t room() const {
    return room_;
  }

  /// The sum is added to what is there, as OpenMP defines it.
  void reduce(std::size_t n) {
    double* const sum = sum_.data();
#pragma omp parallel for num_threads(p_) schedule(static, 1) reduction(+ : sum[:n])
    for (int t = 0; t < p_; ++t) {
      const double* const part = parts_[static_cast<std::size_t>(t)].data();
      for (std::size_t i = 0; i < n; ++i) sum[i] += part[i];
    }
  }

  double seconds(std::size_t n, bool& right) {
    std::fill(sum_.begin(), sum_.end(), 0.0);
    reduce(n);
    right = right && is_sum(sum_, n, p_);
    const auto call = [&] { reduce(n); };
    return looped_calls(calls_in(kLoop_s, looped_calls(5, call), kMostCalls), call);
  }

 private:
  static std::size_t stack_bytes() {
    pthread_attr_t attributes;
    std::size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes;
  }

  int p_;
  std::size_t room_;
  std::vector<std::vector<double>> parts_;
  std::vector<double> sum_;
};

/// Seconds of a reduction for each of `sizes`, on rank 0; 0 where the stacks have no room.
std::vector<double> openmp_seconds(int p, const std::vector<std::size_t>& sizes, bool& right) {
  std::vector<double> s;
  {
    Threads threads(p, sizes.back());
    for (const std::size_t n : sizes) s.push_back(n <= threads.room() ? threads.seconds(n, right) : 0);
  }
  omp_pause_resource_all(omp_pause_hard);  // or its threads would spin beside the ranks for a while
  return s;
}
constexpr bool kOpenMP = true;
int cores() {
  return omp_get_num_procs();
}
#else
std::vector<double> openmp_seconds(int, const std::vector<std::size_t>& sizes, bool&) {
  return std::vector<double>(sizes.size());
}
constexpr bool kOpenMP = false;
int cores() {
  return 0;
}
#endif

/// Numbers that are reduced.
std::vector<std::size_t> sizes_to(std::size_t largest) {
  std::vector<std::size_t> sizes;
  for (std::size_t n = 1; n < largest; n *= 4) sizes.push_back(n);
  sizes.push_back(largest);
  return sizes;
}

enum ReduceWay : std::size_t { kByOpenMP, kOurReduce, kMpiReduce };

/// Seconds of each way, for each size; whether all results were right on this rank. Collective.
std::vector<Turns> measure(WorkloadSides& sides, const std::vector<std::size_t>& sizes, bool& right) {
  const Communicator& comm = sides.comm;
  std::vector<Turns> turns(sizes.size());
  std::vector<double> mine, sum, openmp(sizes.size());
  agreed(comm, [&] {  // one rank alone may lack the memory
    mine.resize(sizes.back());
    sum.resize(sizes.back());
  });
  fill(mine.data(), mine.size(), comm.rank());
  const auto seconds = [&](WorkloadCollectives& side, std::size_t n) {
    std::fill(sum.begin(), sum.end(), 0.0);
    const double s = seconds_on_all(comm, [&] { side.reduce(mine.data(), sum.data(), n); });
    right = right && (comm.rank() != 0 || is_sum(sum, n, comm.size()));
    return s;
  };
  for (int k = 0; k < sides.repeats; ++k) {
    on_root_alone(comm, [&] { openmp = openmp_seconds(comm.size(), sizes, right); });
    comm.broadcast(openmp.data(), static_cast<std::int64_t>(openmp.size() * sizeof(double)), 0);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      turns[i].add({openmp[i], seconds(sides.ours, sizes[i]), seconds(sides.mpi, sizes[i])});
  }
  return turns;
}

}  // namespace

Json run_openmp_reduce(WorkloadSides& sides, const BenchWorkloadsOptions& options) {
  const std::vector<std::size_t> sizes = sizes_to(options.largest / sizeof(double));
  bool right = true;
  const std::vector<Turns> turns = measure(sides, sizes, right);
  Json report{{"openmp", kOpenMP}, {"threads", kOpenMP ? sides.comm.size() : 0}, {"cores", cores()}};
  double logs = 0;
  int compared = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double openmp = turns[i].middle(kByOpenMP) * 1e6, ours = turns[i].middle(kOurReduce) * 1e6;
    Json& row = report["cases"].emplace_back(Json{
        {"bytes", sizes[i] * sizeof(double)}, {"isohalo_us", ours}, {"mpi_us", turns[i].middle(kMpiReduce) * 1e6}});
    if (openmp <= 0) continue;  // left out
    row.update({{"openmp_us", openmp}, {"openmp_over_isohalo", openmp / ours}});
    logs += std::log(openmp / ours);
    ++compared;
  }
  if (compared > 0) report["geometric_mean"] = std::exp(logs / compared);
  report["right"] = sides.comm.min(right) == 1;
  return report;
}

}  // namespace isohalo
