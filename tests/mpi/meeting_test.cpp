/// Meetings of all ranks, and comparisons that stay in step where a rank does not take part in all of them.

#include "framework/mpi/meeting.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <vector>

#include "framework/mpi/comparison.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo::detail {
namespace {

Communicator own_communicator() {
  return Communicator::of(MPI_COMM_WORLD);
}

bool last() {
  return test::rank() == test::ranks() - 1;
}

void meet_quietly(const Communicator& comm, const ObjectName& name, std::uint32_t number) {
  meet(comm, name, number, {}, [] {});
}

/// True when all hold the same.
bool finished_equal(const Communicator& comm, Comparison& c) {
  wait_until([&] { return c.done(); }, comm.spins());
  return c.equal();
}

void expect_in_step(const Communicator& comm) {
  const ObjectName name(comm);
  std::vector<std::shared_ptr<Comparison>> several;
  for (std::uint64_t k = 0; k < 3; ++k) several.push_back(Comparison::begin(comm, comm.take_serial(), 40 * k));
  meet_quietly(comm, name, 0);
  for (const auto& c : several) EXPECT_TRUE(finished_equal(comm, *c));
  std::int64_t counts[2] = {comm.comparisons(), -comm.comparisons()};
  meet(comm, name, 1, counts, [] {});
  EXPECT_EQ(counts[0], -counts[1]);
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

TEST(Comparison, OfEqualAndOfDifferentNumbers) {
  const Communicator comm = own_communicator();
  for (const bool differ : {false, true}) {
    const std::uint64_t number = 4000000000000000000u + (differ && last() ? 1000 : 0);
    const auto c = Comparison::begin(comm, comm.take_serial(), number);
    EXPECT_EQ(finished_equal(comm, *c), !differ || test::ranks() == 1);
    EXPECT_FALSE(c->missed());
  }
  expect_in_step(comm);
}

/// The others have begun one when a rank that has not comes to a meeting.
TEST(Comparison, MeetingsMakeUpForWhatARankHasNotBegun) {
  if (test::ranks() == 1) return;
  const Communicator comm = own_communicator();
  const ObjectName name(comm);
  const std::uint64_t serial = comm.take_serial();
  std::vector<std::shared_ptr<Comparison>> begun;
  for (int k = 0; k < 2 && !last(); ++k) begun.push_back(Comparison::begin(comm, serial, 4));
  meet_quietly(comm, name, 0);
  for (const auto& c : begun) {
    finished_equal(comm, *c);
    EXPECT_TRUE(c->missed());
  }
  expect_in_step(comm);
}

/// A rank goes on to the next one before it hears that the others have begun the first.
TEST(Comparison, TwoThatHaveMetAreToldApart) {
  if (test::ranks() == 1) return;
  const Communicator comm = own_communicator();
  const ObjectName meeting(comm);
  const std::uint64_t older = comm.take_serial(), newer = comm.take_serial();
  std::shared_ptr<Comparison> first;
  if (!last()) first = Comparison::begin(comm, older, 4);
  const auto second = Comparison::begin(comm, newer, 4);
  if (first) {
    EXPECT_FALSE(finished_equal(comm, *first));
    EXPECT_TRUE(first->missed());
  }
  EXPECT_TRUE(finished_equal(comm, *second));
  meet_quietly(comm, meeting, 0);
  expect_in_step(comm);
}

/// A rank that stays away waits a moment, in case that it hears of a comparison that it must take part in.
TEST(Comparison, OfAnObjectThatARankStaysAwayFrom) {
  if (test::ranks() == 1) return;
  const Communicator comm = own_communicator();
  const ObjectName object(comm);
  std::shared_ptr<Comparison> c;
  if (last()) {
    Comparison::stay_away(comm, object);
  } else {
    usleep(50000);
    c = Comparison::begin(comm, object.serial, 4);
    send_notices(comm, object, partners(comm), MPI_ERR_ARG, kCompares, "away");
  }
  const auto next = Comparison::begin(comm, comm.take_serial(), 8);
  EXPECT_TRUE(finished_equal(comm, *next));
  if (c) {
    finished_equal(comm, *c);
    EXPECT_TRUE(c->missed());
  }
  expect_in_step(comm);
}

}  // namespace
}  // namespace isohalo::detail
