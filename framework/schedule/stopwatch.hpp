#pragma once
/// How long something took.

#include <chrono>

namespace isohalo::detail {

/// Runs from when it was made, if somebody wants to know: in small steps reading a clock takes as long as some rows
/// of cells.
class Stopwatch {
 public:
  explicit Stopwatch(bool wanted = true) {
    if (wanted) began_ = Clock::now();
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point began_{};
};

}  // namespace isohalo::detail
