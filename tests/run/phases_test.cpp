/// The table of phases, and the regions that profilers see.

#include "framework/run/phases.hpp"

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

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
  const int before = clock.enter(Phase::sweep);
  work(test::rank() == last ? 0.6 : 0.1);
  const int inner = clock.enter(Phase::exchange);
  work(0.01);
  clock.leave(inner);
  clock.leave(before);
  const auto table = clock.table(world);
  ASSERT_EQ(table.size(), 2u);  // phases that took no time are left out
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

std::vector<std::string>& regions() {
  static std::vector<std::string> seen;
  return seen;
}

TEST(Phases, ProfilersSeeThemAsRegions) {
  regions().clear();
  Kokkos::Tools::Experimental::set_push_region_callback([](const char* name) { regions().emplace_back(name); });
  Kokkos::Tools::Experimental::set_pop_region_callback([] { regions().emplace_back("end"); });
  PhaseClock clock;
  const int before = clock.enter(Phase::sweep);
  const int inner = clock.enter(Phase::reduction);
  clock.leave(inner);
  clock.leave(before);
  Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
  Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);
  EXPECT_EQ(regions(), (std::vector<std::string>{"isohalo::sweep", "isohalo::reduction", "end", "end"}));
}

}  // namespace
}  // namespace isohalo
