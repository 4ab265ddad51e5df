#pragma once
/// Progress for people: a bar on a terminal, spaced lines otherwise. Rank 0 only.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace isohalo {

/// Seconds per step of late: of about the last tenth of the run, or of the last second where that is longer. The
/// first stretch of a run, in which memory is touched for the first time and an exchange is chosen, is left out.
class Pace {
 public:
  /// The run has come to `step` after `seconds` of stepping.
  void stepped(std::int64_t step, double seconds);
  /// None before it is known from some steps, or a long one.
  std::optional<double> seconds_per_step() const;

 private:
  static constexpr double kLeast =
      0.1;  ///< seconds: in less than that a rank that loses its core once counts too much

  struct Mark {
    std::int64_t step = 0;
    double seconds = 0;
  };
  std::optional<Mark> from_, since_;  ///< `since_` is to follow `from_` when it is old enough
  Mark now_;
};

/// What a line of progress says of a step.
struct Progress {
  std::int64_t step = 0;
  double time = 0, dt = 0;  ///< dt 0: of a solver without time
  double residual = 0;
  std::string measure;        ///< name and value of what run.stop_residual limits, where that is not the residual
  double stepping_s = 0;      ///< so far, without checkpoints and pictures: what the rate at the end is formed with
  double outputs_left_s = 0;  ///< estimate for the checkpoints and pictures to come
  double limit_left_s = 0;    ///< until run.time_limit_s; infinite without
};

class ProgressDisplay {
 public:
  /// `active` on the rank that prints. Steps run from `first` to `last`, or end earlier with `may_end_early`.
  ProgressDisplay(bool active, std::int64_t first, std::int64_t last, double cells, bool may_end_early);
  /// After every stretch of steps, with the seconds of stepping so far.
  void stepped(std::int64_t step, double seconds) { pace_.stepped(step, seconds); }
  /// After a step whose residual is known. Shows something when enough has happened since the last time.
  void show(const Progress& p);
  /// Ends the bar's line.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  std::string left_text(const Progress& p) const;

  bool active_, terminal_, may_end_early_;
  std::int64_t first_, last_;
  double cells_;
  Pace pace_;
  Clock::time_point shown_ = Clock::now();
  std::int64_t next_ = 0;
  bool open_ = false;
};

/// "1:02:03" or "4.2 s".
std::string duration_text(double seconds);

}  // namespace isohalo
