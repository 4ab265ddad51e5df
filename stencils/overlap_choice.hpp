#pragma once
/// Whether a step sweeps the interior while ghosts travel: tried out in the first steps of a run.

#include <algorithm>
#include <array>
#include <limits>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

enum class Overlap {
  never,
  always,
  automatic,  ///< tries both in the first steps that allow it and keeps the faster, the same on all ranks
};

/// Of one stepper. The bits do not depend on it, so the trial costs nothing but the slower steps in it.
class OverlapChoice {
 public:
  OverlapChoice(Overlap mode, const Communicator& comm)
      : comm_(comm), overlap_(mode == Overlap::always), trial_(mode == Overlap::automatic && comm.size() > 1) {}

  /// For the next step that allows it. The same on all ranks.
  bool overlap() const { return trial_ ? steps_ % 2 == 1 : overlap_; }
  bool decided() const { return !trial_; }

  /// That step took so long on this rank. Collective when it ends the trial.
  void took(double seconds) {
    if (!trial_) return;
    // In the first steps pages are touched and an exchange is chosen.
    if (steps_ >= kWarm) least_[steps_ % 2] = std::min(least_[steps_ % 2], seconds);
    if (++steps_ < kWarm + 2 * kEach) return;
    comm_.allreduce(least_.data(), 2, MPI_DOUBLE, MPI_MAX);
    overlap_ = least_[1] < kGain * least_[0];
    trial_ = false;
  }

 private:
  static constexpr std::size_t kWarm = 4, kEach = 5;
  static constexpr double kGain = 0.98;  // less is noise

  Communicator comm_;
  bool overlap_, trial_;
  std::size_t steps_ = 0;
  std::array<double, 2> least_{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
};

}  // namespace isohalo
