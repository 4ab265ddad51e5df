#pragma once
/// Where the time of a run goes, by phase.

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

enum class Phase { start, exchange, boundary, sweep, reduction, digest, checkpoint, picture };
inline constexpr int kPhases = 8;
const char* phase_name(Phase phase);

/// One line of the table: seconds over the ranks.
struct PhaseTime {
  std::string name;
  double min_s = 0, avg_s = 0, max_s = 0;
  int slowest = 0;    ///< the rank of max_s
  bool slow = false;  ///< it computes markedly longer than the average: 1.25 times, and more than 0.05 s
};

/// This rank's times. Phases do not nest: a phase within another one counts for the inner.
class PhaseClock {
 public:
  /// Enters a phase, and a Kokkos profiling region of its name; returns the phase that was current.
  int enter(Phase phase);
  /// Leaves it for the one that `enter` returned.
  void leave(int previous);
  /// All phases that took any time, the same on all ranks. Collective.
  std::vector<PhaseTime> table(const Communicator& comm) const;

 private:
  using Clock = std::chrono::steady_clock;
  void charge();
  std::array<double, kPhases> spent_{};
  int current_ = -1;
  Clock::time_point since_{};
};

/// A phase for the life of a scope; does nothing without a clock.
class PhaseScope {
 public:
  PhaseScope(PhaseClock* clock, Phase phase) : clock_(clock), previous_(clock ? clock->enter(phase) : -1) {}
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  ~PhaseScope() {
    if (clock_) clock_->leave(previous_);
  }

 private:
  PhaseClock* clock_;
  int previous_;
};

/// The table for people, one line per phase.
std::string phase_table_text(const std::vector<PhaseTime>& table);

}  // namespace isohalo
