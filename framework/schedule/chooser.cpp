#include "framework/schedule/chooser.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "framework/schedule/stopwatch.hpp"

namespace isohalo::detail {

namespace {

constexpr double kLeastLaps = 3, kMostLaps = 50;
// Never dropped, however many are faster: the next measurements may turn them round.
constexpr double kAlike = 1.05;

/// `laps` laps in which all of `running` take turns, beginning with another one each time; the slowest rank's
/// times, in order of `running` within each lap.
std::vector<double> take_turns(const Communicator& comm, const std::vector<std::size_t>& running, int laps,
                               const std::function<double(std::size_t)>& run) {
  const std::size_t n = running.size();
  std::vector<double> seconds(n * static_cast<std::size_t>(laps));
  for (std::size_t r = 0; r < static_cast<std::size_t>(laps); ++r)
    for (std::size_t k = 0; k < n; ++k) seconds[r * n + (r + k) % n] = run(running[(r + k) % n]);
  comm.allreduce(seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX);
  return seconds;
}

}  // namespace

std::vector<double> least_seconds(const Communicator& comm, std::size_t candidates,
                                  const std::function<double(std::size_t)>& run, double budget_s) {
  std::vector<std::size_t> running(candidates);
  std::iota(running.begin(), running.end(), std::size_t{0});
  take_turns(comm, running, 1, run);
  std::vector<double> best(candidates, std::numeric_limits<double>::max());
  double left = budget_s;
  const auto measure = [&](int laps) {
    const auto seconds = take_turns(comm, running, laps, run);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      double& least = best[running[i % running.size()]];
      least = std::min(least, seconds[i]);
      left -= seconds[i];
    }
  };
  measure(3);  // tells how long laps take
  for (std::size_t keep = candidates;;) {
    double lap = 0;
    for (std::size_t k : running) lap += best[k];
    const double share = left / (keep <= 2 ? 1 : 2);  // half of what is left, but in the end all
    measure(static_cast<int>(std::clamp(share / std::max(lap, 1e-9), kLeastLaps, kMostLaps)));
    if (keep <= 2) return best;
    keep = (keep + 1) / 2;
    std::sort(running.begin(), running.end(), [&](std::size_t a, std::size_t b) { return best[a] < best[b]; });
    const double limit = kAlike * best[running.front()];
    while (running.size() > keep && best[running.back()] > limit) running.pop_back();
  }
}

std::size_t fastest(const std::vector<double>& seconds) {
  return static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
}

double seconds_of(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

}  // namespace isohalo::detail
