#pragma once
/// `--plan`: what a run on so many ranks would look like, without running it.

#include <string>
#include <vector>

#include "framework/halo/halo_regions.hpp"
#include "framework/run/input.hpp"
#include "framework/run/run.hpp"

namespace isohalo {

/// What lies around the grid. Throws UsageError when the stencil reaches too far for it, or parallel.exchange is
/// none for this stencil. Local.
template <int D>
BoundaryTopology<D> checked_topology(const Input<D>& in);

/// Length of a step and the time at the end: "dt = 0.001, t = 0.1 after 100 steps"; empty for a solver without
/// time.
template <int D>
std::string time_text(const Input<D>& in);

/// Process grid, imbalance, halo depth, messages and bytes that the schedule of an exchange has (by face,
/// edge and corner), memory, size of a checkpoint, time, ranks that could be spared. A pure function: no ranks
/// needed. Throws UsageError for what a run would refuse.
template <int D>
std::string plan_text(const Input<D>& in, int ranks);

/// An exchange by every pattern of messages that the stencil allows, for simulations. As above.
template <int D>
std::vector<PatternTraffic> traffic_by_pattern(const Input<D>& in, int ranks);

}  // namespace isohalo
