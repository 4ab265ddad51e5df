#pragma once
/// Progress for people: a bar on a terminal, spaced lines otherwise. Rank 0 only.

#include <chrono>
#include <cstdint>
#include <string>

namespace isohalo {

class ProgressDisplay {
 public:
  /// `active` on the rank that prints. Steps run from `first` to `last`.
  ProgressDisplay(bool active, std::int64_t first, std::int64_t last, double cells);
  /// After a step whose residual is known. Shows something when enough has happened since the last time.
  void show(std::int64_t step, double time, double dt, double residual);
  /// Ends the bar's line.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  bool active_, terminal_;
  std::int64_t first_, last_;
  double cells_;
  Clock::time_point begin_, shown_;
  std::int64_t next_ = 0;
  bool open_ = false;
};

/// "1:02:03" or "4.2 s".
std::string duration_text(double seconds);

}  // namespace isohalo
