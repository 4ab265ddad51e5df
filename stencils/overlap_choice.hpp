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

/// Of one stepper.
class OverlapChoice {
 public:
  OverlapChoice(Overlap mode, const Communicator& comm)
      : comm_(comm),
        ways_(mode == Overlap::automatic && comm.size() > 1 ? FastestWay::of(2)
                                                            : FastestWay::decided_for(mode == Overlap::always)) {}

  /// For the next step that allows it. The same on all ranks.
  bool overlap() const { return ways_.way() == 1; }
  bool decided() const { return ways_.decided(); }

  /// That step took so long on this rank. Collective when it ends the trial.
  void took(double seconds) { ways_.took(seconds, &comm_); }

 private:
  Communicator comm_;
  FastestWay ways_;
};

}  // namespace isohalo
