#pragma once
/// Which of a few ways to do the same is the fastest, found out in the first steps of a run.

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Takes each way for a few steps, in turns, then keeps the fastest one. The bits do not depend on it, so the trial
/// costs nothing but the slower steps in it.
class FastestWay {
 public:
  /// Decided, or so many ways to be tried out.
  static FastestWay decided_for(std::size_t way) { return FastestWay(way, 0, 1, 0); }
  /// Another way than the first is kept where it takes less than `gain` of that one's time.
  static FastestWay of(std::size_t ways, double gain = 0.98) { return FastestWay(0, ways, 3, 3, gain); }
  /// What `took` counts as a step is a stretch of many: the first one after another way's counts, too. Each way has
  /// one that does not count, then as many as `counted`. A single way is decided for.
  static FastestWay of_stretches(std::size_t ways, std::size_t counted = 3) {
    return FastestWay(0, ways > 1 ? ways : 0, 1, 1 + counted);
  }

  /// Which one the next step is to take.
  std::size_t way() const { return decided() ? way_ : steps_ / turn_ % least_.size(); }
  bool decided() const { return least_.empty(); }

  /// That step took so long on this rank. With `comm`, on which all ranks take the same ways at the same steps, the
  /// slowest ones decide for all: collective when it ends the trial.
  void took(double seconds, const Communicator* comm = nullptr) {
    if (decided()) return;
    // In the first turns pages are touched and an exchange is chosen; the first step of a turn finds the caches as
    // another way has left them.
    const std::size_t ways = least_.size(), now = way();
    if (steps_ >= turn_ * ways && (turn_ == 1 || steps_ % turn_ > 0)) least_[now] = std::min(least_[now], seconds);
    if (++steps_ < turn_ * ways * rounds_) return;
    if (comm) comm->allreduce(least_.data(), static_cast<int>(ways), MPI_DOUBLE, MPI_MAX);
    const auto fastest = std::min_element(least_.begin(), least_.end());
    way_ = *fastest < gain_ * least_[0] ? static_cast<std::size_t>(fastest - least_.begin()) : 0;
    least_.clear();
  }

 private:
  FastestWay(std::size_t way, std::size_t tried, std::size_t turn, std::size_t rounds, double gain = 0.98)
      : turn_(turn), rounds_(rounds), way_(way), gain_(gain), least_(tried, std::numeric_limits<double>::max()) {}

  std::size_t turn_, rounds_, way_, steps_ = 0;
  double gain_;
  std::vector<double> least_;  ///< seconds, of each way while they are tried out
};

}  // namespace isohalo
