/// Meetings of all ranks.

#include "framework/mpi/meeting.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "tests/mpi_main.hpp"

namespace isohalo::detail {
namespace {

Communicator own_communicator() {
  return Communicator::of(MPI_COMM_WORLD);
}

bool last() {
  return test::rank() == test::ranks() - 1;
}

TEST(Meeting, LeavesTheLargestValuesOnAllRanks) {
  const Communicator comm = own_communicator();
  const ObjectName one(comm), two(comm);
  test::Random random(static_cast<std::uint64_t>(test::rank()));
  for (std::uint32_t number = 0; number < 100; ++number) {
    const auto rank = static_cast<std::int64_t>((static_cast<std::uint32_t>(test::rank()) + number) %
                                                static_cast<std::uint32_t>(test::ranks()));
    std::int64_t values[2] = {rank, -rank};
    if (random.in(0, 9) == 0) usleep(2000);
    meet(comm, number % 3 ? one : two, number, values, [] {});
    EXPECT_EQ(values[0], test::ranks() - 1);
    EXPECT_EQ(values[1], 0);
  }
}

/// By the clock that the ranks of one machine share.
TEST(Meeting, NobodyLeavesBeforeTheLastHasCome) {
  const auto now = [] { return std::int64_t{std::chrono::steady_clock::now().time_since_epoch().count()}; };
  const Communicator comm = own_communicator();
  const ObjectName name(comm);
  for (int late = 0; late < test::ranks(); ++late) {
    if (test::rank() == late) usleep(20000);
    std::int64_t came = now();
    meet(comm, name, static_cast<std::uint32_t>(late), std::span(&came, 1), [] {});
    EXPECT_GE(now(), came);
  }
}

/// A meeting that is broken off leaves nothing behind for those of other objects.
TEST(Meeting, MayBeBrokenOffByListening) {
  const Communicator comm = own_communicator();
  const ObjectName name(comm), other(comm);
  if (test::ranks() == 1) return;
  if (!last()) {
    const double end = MPI_Wtime() + 0.1;
    EXPECT_THROW(meet(comm, name, 0, {},
                      [&] {
                        if (MPI_Wtime() > end) throw UsageError("enough");
                      }),
                 UsageError);
  }
  std::int64_t came = test::rank();
  if (last()) usleep(20000);
  meet(comm, other, 0, std::span(&came, 1), [] {});
  EXPECT_EQ(came, test::ranks() - 1);
}

}  // namespace
}  // namespace isohalo::detail
