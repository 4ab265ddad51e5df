#pragma once
/// How many steps are to follow an exchange, found out in the first steps of a run.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/schedule/fastest_way.hpp"

namespace isohalo {

/// Takes each of some depths for stretches of steps, in turns, then keeps the fastest one, the same on all ranks.
/// The bits do not depend on it.
class DepthChoice {
 public:
  DepthChoice() = default;  ///< nothing is tried out
  /// `cells`: of the largest block.
  DepthChoice(std::vector<int> depths, std::int64_t cells)
      : depths_(std::move(depths)),
        ways_(FastestWay::of_stretches(depths_.size())),
        whole_(cells > kUpdates ? 2 * std::max(1, depths_.back())
                                : std::clamp(kUpdates / std::max<std::int64_t>(1, cells), kLeast, kMost)) {}

  bool decided() const { return ways_.decided(); }
  /// For the next stretch, or for good.
  int depth() const { return depths_[ways_.way()]; }
  /// So many steps of this depth took so long. Local.
  void took(double seconds, std::int64_t steps) {
    seconds_ += seconds;
    steps_ += steps;
  }
  /// All steps after an exchange are made: a stretch that is long enough ends. Collective.
  void end_block(const Communicator& comm) {
    if (decided() || steps_ < whole_) return;
    ways_.took(seconds_ / static_cast<double>(steps_), &comm);
    seconds_ = 0;
    steps_ = 0;
  }

 private:
  /// Steps of a stretch, in which each depth has its share of exchanges: so many updates of the largest block (a
  /// millisecond), within these limits; of larger ones two exchanges of the most steps.
  static constexpr std::int64_t kUpdates = 1 << 21, kLeast = 32, kMost = 128;

  std::vector<int> depths_;
  FastestWay ways_ = FastestWay::decided_for(0);
  std::int64_t whole_ = kLeast, steps_ = 0;
  double seconds_ = 0;  ///< of these steps
};

}  // namespace isohalo
