#include "framework/halo/exchange_timing.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

namespace isohalo::detail {

namespace {

constexpr double kBudget = 0.02;  // seconds
// The second exchange through shared memory is the first to touch its second slot.
constexpr double kLeastRounds = 3, kMostRounds = 15;

template <int D>
double seconds_of(HaloMover<D>& mover, std::span<const ErasedArray<D>> arrays) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  mover.start(arrays);
  mover.finish();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The slowest rank's times.
void slowest(const Communicator& comm, std::vector<double>& seconds) {
  comm.allreduce(seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX);
}

}  // namespace

template <int D>
std::vector<double> time_movers(const Communicator& comm, std::span<const std::unique_ptr<HaloMover<D>>> movers,
                                std::span<const ErasedArray<D>> arrays) {
  std::vector<double> first;  // with types to be made and pages to be touched: only tells how long rounds take
  for (const auto& m : movers) first.push_back(seconds_of(*m, arrays));
  slowest(comm, first);
  const double round = std::accumulate(first.begin(), first.end(), 0.0);
  const auto rounds = static_cast<int>(std::clamp(kBudget / round - 1, kLeastRounds, kMostRounds));
  std::vector<double> seconds;
  for (int r = 0; r < rounds; ++r)
    for (const auto& m : movers) seconds.push_back(seconds_of(*m, arrays));
  slowest(comm, seconds);
  std::vector<double> best(movers.size(), std::numeric_limits<double>::max());
  for (std::size_t k = 0; k < seconds.size(); ++k)
    best[k % movers.size()] = std::min(best[k % movers.size()], seconds[k]);
  return best;
}

#define ISOHALO_INSTANTIATE(D)                                                                                     \
  template std::vector<double> time_movers<D>(const Communicator&, std::span<const std::unique_ptr<HaloMover<D>>>, \
                                              std::span<const ErasedArray<D>>);
ISOHALO_INSTANTIATE(1)
ISOHALO_INSTANTIATE(2)
ISOHALO_INSTANTIATE(3)
ISOHALO_INSTANTIATE(4)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
