#pragma once
/// Whether a step sweeps the interior while ghosts travel: tried out in the first steps of a run.

#include "framework/mpi/communicator.hpp"
#include "framework/schedule/fastest_way.hpp"

namespace isohalo {

enum class Overlap {
  never,
  always,
  automatic,  ///< tries both in the first steps that allow it and keeps the faster, the same on all ranks
};

/// The ways of a stepper on these ranks: 0 does not overlap, 1 does. `took` is to get the same `comm`, so that all
/// ranks decide alike.
inline FastestWay overlap_ways(Overlap mode, const Communicator& comm) {
  return mode == Overlap::automatic && comm.size() > 1 ? FastestWay::of(2)
                                                       : FastestWay::decided_for(mode == Overlap::always);
}

}  // namespace isohalo
