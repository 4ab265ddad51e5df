#pragma once
/// Where the time of a run goes, by phase.

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// `progress`: printing it. `other`: what is in none of the others, such as looking for signals.
enum class Phase { start, exchange, boundary, sweep, reduction, digest, checkpoint, picture, progress, other };
inline constexpr int kPhases = 10;

/// One line of the table: seconds over the ranks.
struct PhaseTime {
  std::string name;
  double min_s = 0, avg_s = 0, max_s = 0;
  int slowest = 0;    ///< the rank of max_s
  bool slow = false;  ///< it computes markedly longer than the average: 1.25 times, and more than 0.05 s
};

/// This rank's times. Phases do not nest: a phase within another one counts for the inner. Every second since the
/// clock was made is charged to one phase, at first to `start`.
class PhaseClock {
 public:
  /// Enters a phase, and a Kokkos profiling region of its name; returns the phase that was current.
  Phase enter(Phase phase);
  /// Leaves it for the one that `enter` returned.
  void leave(Phase previous);
  /// Seconds spent in a phase that is not current.
  double seconds(Phase phase) const { return spent_[static_cast<std::size_t>(phase)]; }
  /// The average over the times it was entered; 0 before the first.
  double seconds_each(Phase phase) const;
  /// All phases that took any time, up to now, and their sum, "total", which is the time since the clock was made.
  /// The same on all ranks. Collective.
  std::vector<PhaseTime> table(const Communicator& comm) const;

 private:
  using Clock = std::chrono::steady_clock;
  void charge();
  std::array<double, kPhases> spent_{};
  std::array<std::int64_t, kPhases> entered_{};
  Phase current_ = Phase::start;
  Clock::time_point since_ = Clock::now();
};

/// A phase for the life of a scope; does nothing without a clock.
class PhaseScope {
 public:
  PhaseScope(PhaseClock* clock, Phase phase) : clock_(clock), previous_(clock ? clock->enter(phase) : phase) {}
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  ~PhaseScope() {
    if (clock_) clock_->leave(previous_);
  }

 private:
  PhaseClock* clock_;
  Phase previous_;
};

/// The table for people, one line per phase and one for the total.
std::string phase_table_text(const std::vector<PhaseTime>& table);

}  // namespace isohalo
