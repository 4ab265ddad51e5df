/// Messages and memory of reductions over MPI, counted behind MPI's profiling interface and operator new.

#include <gtest/gtest.h>

#include "framework/reduce/array_reducer.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/mpi_main.hpp"
#include "tests/neighborhood/counters.hpp"

namespace isohalo {
namespace {

/// Messages of all ranks in one reduction of a number per rank.
std::uint64_t messages(const ReductionOptions& options) {
  ArrayReducer<double> sum(MPI_COMM_WORLD, 1, Sum(), options, 1);
  const double number = test::rank() + 1;
  const auto reduce = [&] {
    const double got = sum.reduce(&number);
    const bool mine = options.root < 0 || options.root == test::rank();
    EXPECT_TRUE(!mine || got == test::ranks() * (test::ranks() + 1) / 2) << options.schedule;
  };
  reduce();
  reduce();
  const Communicator world = Communicator::of(MPI_COMM_WORLD);
  world.barrier();
  const long sends = test::sends, allocations = test::allocations;
  reduce();
  const long sent = test::sends - sends;
  EXPECT_EQ(test::allocations - allocations, 0) << options.schedule;
  return world.sum(static_cast<std::uint64_t>(sent));
}

TEST(ReductionMessages, ToAllRanksAreThoseOfTheSchedule) {
  const int p = test::ranks();
  const auto count = [&](const std::string& schedule) {
    return messages({ReductionMethod::tree, schedule, false, false});
  };
  const auto n = static_cast<std::uint64_t>(p);
  if (p > 1) {
    EXPECT_EQ(count("a" + std::to_string(p)), n * (n - 1));
  }
  if (p == 4) {
    EXPECT_EQ(count("a2,a2"), 8u);
  }
  if (p == 6) {
    EXPECT_EQ(count("c4m2,a2,a2,e4m2"), 2 + 8 + 2u);
  }
  EXPECT_EQ(messages({ReductionMethod::binary_tree}), 2 * (n - 1));
}

TEST(ReductionMessages, ToOneRankAreThoseThatItNeeds) {
  const int p = test::ranks();
  const auto least = static_cast<std::uint64_t>(p - 1);  // every other rank has a number to give
  const std::vector<std::string> schedules{"auto", recursive_doubling(p).text(), elimination(p).text(),
                                           p > 1 ? "a" + std::to_string(p) : "auto"};
  for (const std::string& schedule : schedules)
    for (int root = 0; root < p; ++root) {
      const std::uint64_t to_one = messages({ReductionMethod::tree, schedule, false, false, root}),
                          to_all = messages({ReductionMethod::tree, schedule, false, false});
      EXPECT_GE(to_one, least);
      EXPECT_LE(to_one, p > 2 ? to_all - 1 : to_all) << schedule << " to " << root;
      if (schedule == schedules[1]) {
        EXPECT_LE(to_one, least + 1) << " to " << root;  // one more when the root gave its value away
      } else if (schedule == schedules[3]) {
        EXPECT_EQ(to_one, least) << " to " << root;
      }
    }
}

TEST(ReductionMessages, OnOneNodeThereAreNone) {
  EXPECT_EQ(messages({}), 0u);
  EXPECT_EQ(messages({ReductionMethod::tree, "auto", false, true, 0}), 0u);
}

}  // namespace
}  // namespace isohalo
