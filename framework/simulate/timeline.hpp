#pragma once
/// Simulations as pictures and as programs for other simulators.

#include <iosfwd>

#include "framework/simulate/simulator.hpp"

namespace isohalo {

inline constexpr int kTimelineRanks = 64;  ///< up to here a lane per rank, beyond a summary

/// An SVG picture, as the paper's Figs. 18 to 23: a lane per rank with its sends, the arrivals of its messages at
/// their receivers, and what it takes; time to the right, in nanoseconds. Needs a result with recorded tasks. With
/// more than kTimelineRanks ranks a lane per stage instead: when the ranks entered it (all, the middle half, the
/// median).
void write_svg(std::ostream& out, const Schedule& schedule, const SimulationOptions& options,
               const SimulationResult& result);

/// GOAL text, as LogGOPSim reads it: per rank its sends, receives and calculations with what each requires. Times
/// are rounded to whole nanoseconds. Source: Hoefler, Siebert, Lumsdaine 2009, "Group operation assembly language".
/// Throws UsageError beyond 20 million messages.
void write_goal(std::ostream& out, const Schedule& schedule, const SimulationOptions& options);

}  // namespace isohalo
