#pragma once
/// Which of two ways to do the same is faster, found out in the first steps of a run.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace isohalo {

/// Takes the two ways in turns, then keeps the faster one. The bits do not depend on it, so the trial costs nothing
/// but the slower steps in it.
class TwoWays {
 public:
  /// Decided for the first or the second way, or to be tried out.
  static TwoWays decided_for(bool second) { return TwoWays(second, false); }
  static TwoWays tried() { return TwoWays(false, true); }

  /// Is the next step to take the second way?
  bool second() const { return trial_ ? steps_ % 2 == 1 : second_; }
  bool decided() const { return !trial_; }

  /// That step took so long. `agree(times)` is called once, at the end, with the least times of the two ways.
  template <class Agree>
  void took(double seconds, const Agree& agree) {
    if (!trial_) return;
    // In the first steps pages are touched and an exchange is chosen.
    if (steps_ >= kWarm) least_[steps_ % 2] = std::min(least_[steps_ % 2], seconds);
    if (++steps_ < kWarm + 2 * kEach) return;
    agree(least_);
    second_ = least_[1] < kGain * least_[0];
    trial_ = false;
  }
  void took(double seconds) {
    took(seconds, [](const auto&) {});
  }

 private:
  TwoWays(bool second, bool trial) : second_(second), trial_(trial) {}

  static constexpr std::size_t kWarm = 4, kEach = 5;
  static constexpr double kGain = 0.98;  // less is noise

  bool second_, trial_;
  std::size_t steps_ = 0;
  std::array<double, 2> least_{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
};

}  // namespace isohalo
