#pragma once
/// Which of several ways to do the same is the fastest on the live communicator. One chooser for halo transports
/// and schedules of reductions.

#include <cstddef>
#include <functional>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo::detail {

/// What an automatic choice may cost.
constexpr double kTimingBudget_s = 0.02;

/// Seconds that each of `candidates` ways needs at best, the same numbers on all ranks; the least belongs to the
/// fastest way. `run(k)` takes way k once and returns this rank's seconds; what counts is the slowest rank.
///
/// Disturbances only add to a time, so the least of several counts. First each way runs once, uncounted: pages are
/// touched and types are made. Then all run in turns, the slower half drops out, and so on until two are left:
/// those that are hard to tell apart are run most. Takes about `budget_s`, or some ten runs of each way where these
/// take longer. Collective.
std::vector<double> least_seconds(const Communicator& comm, std::size_t candidates,
                                  const std::function<double(std::size_t)>& run, double budget_s = kTimingBudget_s);

/// The place of the least of them.
std::size_t fastest(const std::vector<double>& seconds);

/// Seconds that `work` takes on this rank.
double seconds_of(const std::function<void()>& work);

}  // namespace isohalo::detail
