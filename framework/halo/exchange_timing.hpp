#pragma once
/// Which of several movers is fastest on the live communicator. Private to framework/halo: use HaloPlan.

#include <functional>

#include "framework/halo/halo_mover.hpp"

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
                                  const std::function<double(std::size_t)>& run, double budget_s);

/// The same for movers of these arrays; about 20 ms. Brings the ghosts in place, again and again, and changes
/// nothing else. Collective.
template <int D>
std::vector<double> time_movers(const Communicator& comm, std::span<const std::unique_ptr<HaloMover<D>>> movers,
                                std::span<const ErasedArray<D>> arrays);

}  // namespace isohalo::detail
