#include "framework/run/phases.hpp"

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace {

std::size_t place(Phase phase) {
  return static_cast<std::size_t>(phase);
}

/// Names of the profiling regions, made once: a phase may be entered many times in a step.
const std::array<std::string, kPhases> kRegions{
    "isohalo::start",  "isohalo::exchange",   "isohalo::boundary", "isohalo::sweep",    "isohalo::reduction",
    "isohalo::digest", "isohalo::checkpoint", "isohalo::picture",  "isohalo::progress", "isohalo::other"};

const char* name_of(std::size_t phase) {
  return kRegions[phase].c_str() + std::string_view("isohalo::").size();
}

}  // namespace

void PhaseClock::charge() {
  const auto now = Clock::now();
  spent_[place(current_)] += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

Phase PhaseClock::enter(Phase phase) {
  // What is done during an exchange is no place to break the program at: the exchange would be left in flight.
  if (current_ != Phase::exchange) detail::fault_point(name_of(place(phase)));
  Kokkos::Profiling::pushRegion(kRegions[place(phase)]);
  charge();
  ++entered_[place(phase)];
  return std::exchange(current_, phase);
}

void PhaseClock::leave(Phase previous) {
  charge();
  current_ = previous;
  Kokkos::Profiling::popRegion();
}

double PhaseClock::seconds_each(Phase phase) const {
  const std::int64_t times = entered_[place(phase)];
  return times > 0 ? seconds(phase) / static_cast<double>(times) : 0;
}

std::vector<PhaseTime> PhaseClock::table(const Communicator& comm) const {
  constexpr std::size_t rows = kPhases + 1;  // the last is the total
  std::array<double, rows> mine{};
  std::copy(spent_.begin(), spent_.end(), mine.begin());
  mine[place(current_)] += std::chrono::duration<double>(Clock::now() - since_).count();
  mine[kPhases] = std::accumulate(mine.begin(), mine.end() - 1, 0.0);
  struct Slowest {
    double seconds;
    int rank;
  };
  std::array<double, rows> least = mine, sum = mine;
  std::array<Slowest, rows> most{};
  for (std::size_t k = 0; k < rows; ++k) most[k] = {mine[k], comm.rank()};
  comm.allreduce(least.data(), rows, MPI_DOUBLE, MPI_MIN);
  comm.allreduce(sum.data(), rows, MPI_DOUBLE, MPI_SUM);
  comm.allreduce(most.data(), rows, MPI_DOUBLE_INT, MPI_MAXLOC);
  std::vector<PhaseTime> table;
  for (std::size_t k = 0; k < rows; ++k) {
    if (most[k].seconds == 0) continue;
    PhaseTime t{.name = k < kPhases ? name_of(k) : "total",
                .min_s = least[k],
                .avg_s = sum[k] / comm.size(),
                .max_s = most[k].seconds,
                .slowest = most[k].rank};
    // Only sweeps are a rank's own work; in the other phases ranks wait for each other.
    t.slow = k == place(Phase::sweep) && t.max_s > 1.25 * t.avg_s && t.max_s - t.avg_s > 0.05;
    table.push_back(t);
  }
  return table;
}

std::string phase_table_text(const std::vector<PhaseTime>& table) {
  std::string s = fmt::format("{:12} {:>10} {:>10} {:>10}  seconds over the ranks\n", "phase", "min", "avg", "max");
  for (const auto& t : table) {
    s += fmt::format("{:12} {:>10.3f} {:>10.3f} {:>10.3f}", t.name, t.min_s, t.avg_s, t.max_s);
    if (t.slow)
      s += fmt::format("  rank {} is slow: it sweeps {:.2f} times as long as the average", t.slowest,
                       t.max_s / t.avg_s);
    s += "\n";
  }
  return s;
}

}  // namespace isohalo
