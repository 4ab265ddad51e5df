#include "framework/run/phases.hpp"

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <algorithm>

#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace {
constexpr const char* kNames[kPhases] = {"start",     "exchange", "boundary",   "sweep",
                                         "reduction", "digest",   "checkpoint", "picture"};
}

const char* phase_name(Phase phase) {
  return kNames[static_cast<int>(phase)];
}

void PhaseClock::charge() {
  const auto now = Clock::now();
  if (current_ >= 0)
    spent_[static_cast<std::size_t>(current_)] += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

int PhaseClock::enter(Phase phase) {
  detail::fault_point(phase_name(phase));
  Kokkos::Profiling::pushRegion(std::string("isohalo::") + phase_name(phase));
  charge();
  const int previous = current_;
  current_ = static_cast<int>(phase);
  return previous;
}

void PhaseClock::leave(int previous) {
  charge();
  current_ = previous;
  Kokkos::Profiling::popRegion();
}

std::vector<PhaseTime> PhaseClock::table(const Communicator& comm) const {
  std::array<double, kPhases> least = spent_, most = spent_, sum = spent_;
  comm.allreduce(least.data(), kPhases, MPI_DOUBLE, MPI_MIN);
  comm.allreduce(most.data(), kPhases, MPI_DOUBLE, MPI_MAX);
  comm.allreduce(sum.data(), kPhases, MPI_DOUBLE, MPI_SUM);
  std::array<std::int64_t, kPhases> slowest{};
  for (std::size_t k = 0; k < kPhases; ++k) slowest[k] = spent_[k] == most[k] ? comm.rank() : -1;
  comm.allreduce(slowest.data(), kPhases, MPI_INT64_T, MPI_MAX);
  std::vector<PhaseTime> table;
  for (std::size_t k = 0; k < kPhases; ++k) {
    if (most[k] == 0) continue;
    PhaseTime t{kNames[k], least[k], sum[k] / comm.size(), most[k], static_cast<int>(slowest[k]), false};
    // Only sweeps are a rank's own work; in the other phases ranks wait for each other.
    t.slow = k == static_cast<std::size_t>(Phase::sweep) && t.max_s > 1.25 * t.avg_s && t.max_s - t.avg_s > 0.05;
    table.push_back(t);
  }
  return table;
}

std::string phase_table_text(const std::vector<PhaseTime>& table) {
  std::string s = fmt::format("{:12} {:>10} {:>10} {:>10}  seconds over the ranks\n", "phase", "min", "avg", "max");
  for (const auto& t : table) {
    s += fmt::format("{:12} {:>10.3f} {:>10.3f} {:>10.3f}", t.name, t.min_s, t.avg_s, t.max_s);
    if (t.slow) s += fmt::format("  rank {} is slow: {:.2f} times the average", t.slowest, t.max_s / t.avg_s);
    s += "\n";
  }
  return s;
}

}  // namespace isohalo
