/// What a run says of its time: the table of phases, the regions that profilers see, the pace.

#include "framework/run/phases.hpp"

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "framework/run/progress_display.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

void work(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST(Phases, ARankThatSweepsLongerIsNamed) {
  const Communicator world = Communicator::of(MPI_COMM_WORLD);
  const int last = test::ranks() - 1;
  PhaseClock clock;
  const Phase before = clock.enter(Phase::sweep);
  work(test::rank() == last ? 0.6 : 0.1);
  const Phase inner = clock.enter(Phase::exchange);
  work(0.01);
  clock.leave(inner);
  clock.leave(before);
  const auto table = clock.table(world);
  std::vector<std::string> names;
  for (const auto& row : table) names.push_back(row.name);
  // Phases that took no time are left out.
  ASSERT_EQ(names, (std::vector<std::string>{"start", "exchange", "sweep", "total"}));
  const std::string text = phase_table_text(table);
  for (const auto& row : table) {
    EXPECT_LE(row.min_s, row.avg_s);
    EXPECT_LE(row.avg_s, row.max_s);
    const bool slow = std::string(row.name) == "sweep" && last > 0;
    EXPECT_EQ(row.slow, slow) << row.name;
    if (std::string(row.name) == "sweep") {
      EXPECT_EQ(row.slowest, last);
      EXPECT_GE(row.max_s, 0.6);
    }
  }
  const std::string words = "rank " + std::to_string(last) + " is slow: ";
  EXPECT_EQ(text.find(words) != text.npos, last > 0) << text;
}

TEST(Phases, EverySecondIsChargedToOnePhase) {
  const Communicator world = Communicator::of(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  PhaseClock clock;
  work(0.02);
  {
    const PhaseScope other(&clock, Phase::other);
    work(0.03);
    for (int k = 0; k < 3; ++k) {
      const PhaseScope scope(&clock, Phase::exchange);
      const PhaseScope inner(&clock, Phase::sweep);
      work(0.01);
    }
    {
      const PhaseScope scope(&clock, Phase::checkpoint);
      work(0.05);
      const auto table = clock.table(world);  // within a phase: it counts up to now
      EXPECT_EQ(table.back().name, "total");
      EXPECT_EQ(table[table.size() - 3].name, "checkpoint");
      EXPECT_GE(table[table.size() - 3].min_s, 0.05);
    }
  }
  const auto table = clock.table(world);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double sum = 0;
  for (const auto& row : table)
    if (row.name != "total") sum += row.avg_s;
  EXPECT_NEAR(sum, table.back().avg_s, 1e-9);
  EXPECT_GE(table.back().min_s, 0.13);
  EXPECT_LE(table.back().min_s, wall);
  EXPECT_GE(clock.seconds(Phase::sweep), 0.03);
  EXPECT_NEAR(3 * clock.seconds_each(Phase::sweep), clock.seconds(Phase::sweep), 1e-12);
  EXPECT_EQ(clock.seconds_each(Phase::picture), 0);
}

TEST(Pace, IsThatOfLateWithoutTheFirstStretch) {
  Pace pace;
  EXPECT_FALSE(pace.seconds_per_step());
  pace.stepped(1, 0.5);  // an exchange was chosen
  EXPECT_FALSE(pace.seconds_per_step());
  pace.stepped(10, 0.5 + 9 * 0.01);  // too little to tell
  EXPECT_FALSE(pace.seconds_per_step());
  pace.stepped(12, 0.5 + 11 * 0.01);
  ASSERT_TRUE(pace.seconds_per_step());
  EXPECT_NEAR(*pace.seconds_per_step(), 0.01, 1e-12);
  double seconds = 0.61;
  for (int step = 13; step <= 1000; ++step) pace.stepped(step, seconds += 0.01);
  EXPECT_NEAR(*pace.seconds_per_step(), 0.01, 1e-9);
  for (int step = 1001; step <= 1150; ++step) pace.stepped(step, seconds += 0.04);  // others use the machine
  EXPECT_NEAR(*pace.seconds_per_step(), 0.04, 1e-9);
}

std::vector<std::string>& regions() {
  static std::vector<std::string> seen;
  return seen;
}

TEST(Phases, ProfilersSeeThemAsRegions) {
  regions().clear();
  Kokkos::Tools::Experimental::set_push_region_callback([](const char* name) { regions().emplace_back(name); });
  Kokkos::Tools::Experimental::set_pop_region_callback([] { regions().emplace_back("end"); });
  PhaseClock clock;
  const Phase before = clock.enter(Phase::sweep);
  const Phase inner = clock.enter(Phase::reduction);
  clock.leave(inner);
  clock.leave(before);
  Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
  Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);
  EXPECT_EQ(regions(), (std::vector<std::string>{"isohalo::sweep", "isohalo::reduction", "end", "end"}));
}

}  // namespace
}  // namespace isohalo
