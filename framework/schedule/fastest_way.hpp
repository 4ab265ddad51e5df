#pragma once
/// Which of a few ways to do the same is the fastest, found out in the first steps of a run.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace isohalo {

/// Takes each way for a few steps, in turns, then keeps the fastest one. The bits do not depend on it, so the trial
/// costs nothing but the slower steps in it.
class FastestWay {
 public:
  /// Decided, or so many ways to be tried out.
  static FastestWay decided_for(std::size_t way) { return FastestWay(way, 0, 1, 0); }
  /// Another way than the first is kept where it takes less than `gain` of that one's time.
  static FastestWay of(std::size_t ways, double gain = 0.98) { return FastestWay(0, ways, 3, 3, gain); }
  /// What `took` counts as a step is a stretch of many: the first one after another way's counts, too, and each way
  /// has three that count.
  static FastestWay of_stretches(std::size_t ways) { return FastestWay(0, ways, 1, 4); }

  /// Which one the next step is to take.
  std::size_t way() const { return decided() ? way_ : steps_ / turn_ % least_.size(); }
  bool decided() const { return least_.empty(); }

  /// That step took so long. `agree(times)` is called once, at the end, with the least times of the ways.
  template <class Agree>
  void took(double seconds, const Agree& agree) {
    if (decided()) return;
    // In the first turns pages are touched and an exchange is chosen; the first step of a turn finds the caches as
    // another way has left them.
    const std::size_t ways = least_.size(), now = way();
    if (steps_ >= turn_ * ways && (turn_ == 1 || steps_ % turn_ > 0)) least_[now] = std::min(least_[now], seconds);
    if (++steps_ < turn_ * ways * rounds_) return;
    agree(least_);
    const auto fastest = std::min_element(least_.begin(), least_.end());
    way_ = *fastest < gain_ * least_[0] ? static_cast<std::size_t>(fastest - least_.begin()) : 0;
    least_.clear();
  }
  void took(double seconds) {
    took(seconds, [](const auto&) {});
  }

 private:
  FastestWay(std::size_t way, std::size_t tried, std::size_t turn, std::size_t rounds, double gain = 0.98)
      : turn_(turn), rounds_(rounds), way_(way), gain_(gain), least_(tried, std::numeric_limits<double>::max()) {}

  std::size_t turn_, rounds_, way_, steps_ = 0;
  double gain_;
  std::vector<double> least_;  ///< seconds, of each way while they are tried out
};

}  // namespace isohalo
