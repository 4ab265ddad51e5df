/// Where ranks are by hwloc, on a machine that is described to it: the cores that they are bound to are this one's.

#include "framework/shm/hierarchy.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// All threads of this process, as a launcher would do it: MPI has some of its own.
bool bind_to(const cpu_set_t& cores) {
  bool done = true;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    done = sched_setaffinity(std::stoi(thread.path().filename()), sizeof cores, &cores) == 0 && done;
  return done;
}

cpu_set_t cores_from_to(int first, int last) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core = first; core <= last; ++core) CPU_SET(static_cast<std::size_t>(core), &set);
  return set;
}

/// Ranks come in pairs, one on each of two cores, in two packages or what else the environment describes; of an odd
/// number the last rank is bound to none, and then no level is known. A process looks only once.
TEST(Hierarchy, IsWhatHwlocSays) {
  setenv("HWLOC_SYNTHETIC", "package:2 numa:1 l3:1 l2:1 pu:1", 0);
  setenv("HWLOC_THISSYSTEM", "1", 1);  // what it is bound to is asked of the system
  const int p = test::ranks(), me = test::rank();
  bool bound = bind_to(cores_from_to(0, 0)) && bind_to(cores_from_to(1, 1));
  const bool free = p % 2 == 1 && me == p - 1;
  bound = bind_to(free ? cores_from_to(0, 1) : cores_from_to(me % 2, me % 2)) && bound;
  int all = bound;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!all) GTEST_SKIP() << "cores 0 and 1 are not to be had";
  const Hierarchy h = Hierarchy::of_machine(MPI_COMM_WORLD, 5, {});
  if (p % 2 == 1) {
    EXPECT_EQ(h.levels(), 1) << h.text();
    return;
  }
  ASSERT_EQ(h.levels(), 2) << h.text();
  ASSERT_EQ(h.groups(1).size(), 2u);
  for (int r = 0; r < p; ++r) EXPECT_EQ(h.group(1, r), r % 2) << r;
}

}  // namespace
}  // namespace isohalo
