/// Slots in shared memory: rounds, reuse of the memory, no room, several compute nodes.

#include "framework/shm/node_reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "framework/mpi/progress.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

Communicator world() {
  return Communicator::of(MPI_COMM_WORLD);
}

TEST(NodeSegment, LayoutCoversAllRanks) {
  const auto segment = NodeSegment::of(world());
  ASSERT_TRUE(test::all_ranks_ok(segment != nullptr));
  const NodeLayout& l = segment->layout();
  ASSERT_EQ(l.node_of_rank.size(), static_cast<std::size_t>(test::ranks()));
  EXPECT_EQ(l.members[static_cast<std::size_t>(l.me)], test::rank());
  EXPECT_EQ(l.leads(), l.members.front() == test::rank());
  EXPECT_TRUE(std::is_sorted(l.members.begin(), l.members.end()));
  const char* const nodes = std::getenv("ISOHALO_TEST_NODES");
  if (nodes) {
    EXPECT_EQ(l.leaders.size(), static_cast<std::size_t>(std::atoi(nodes)));
  }
  int mine = 0;
  for (int r = 0; r < test::ranks(); ++r) {
    const int node = l.node_of_rank[static_cast<std::size_t>(r)];
    EXPECT_LE(l.leaders[static_cast<std::size_t>(node)], r);
    mine += l.leaders[static_cast<std::size_t>(node)] == l.members.front();
  }
  EXPECT_EQ(mine, static_cast<int>(l.members.size()));
  EXPECT_EQ(NodeSegment::of(world()), segment);  // once per communicator
}

/// Each member publishes (rank, round) and checks what all others published.
void run_rounds(SegmentSlots& slots, std::size_t words, int rounds, std::int64_t salt) {
  const NodeLayout& l = slots.layout();
  for (int round = 0; round < rounds; ++round) {
    slots.begin();
    std::vector<std::int64_t> mine(words, salt + 1000 * round + test::rank());
    std::memcpy(slots.mine(), mine.data(), 8 * words);
    slots.publish();
    for (std::size_t m = 0; m < l.members.size(); ++m) {
      wait_until([&] { return slots.published(static_cast<int>(m)); }, world().spins());
      std::vector<std::int64_t> theirs(words);
      std::memcpy(theirs.data(), slots.read(static_cast<int>(m)), 8 * words);
      const std::vector<std::int64_t> expected(words, salt + 1000 * round + l.members[m]);
      ASSERT_EQ(theirs, expected) << "round " << round;
    }
  }
}

TEST(SegmentSlots, ManyRounds) {
  for (const std::size_t words : {1u, 7u, 8u, 100u}) {
    auto slots = SegmentSlots::make(world(), 8 * words);
    ASSERT_TRUE(test::all_ranks_ok(slots.has_value()));
    run_rounds(*slots, words, 500, 0);
  }
}

TEST(SegmentSlots, MemoryIsUsedAgainAndSeveralLiveSideBySide) {
  auto kept = SegmentSlots::make(world(), 64);
  ASSERT_TRUE(test::all_ranks_ok(kept.has_value()));
  run_rounds(*kept, 8, 3, 5);
  for (int again = 0; again < 40; ++again) {  // more than the segment could hold at a time
    auto slots = SegmentSlots::make(world(), NodeSegment::kBytes / 16);
    ASSERT_TRUE(test::all_ranks_ok(slots.has_value()));
    run_rounds(*slots, 4, 2, 77 * again);
    run_rounds(*kept, 8, 2, again);
  }
  if (test::rank() == 0) kept.reset();  // ranks may give back at different times
  auto other = SegmentSlots::make(world(), 64);
  ASSERT_TRUE(test::all_ranks_ok(other.has_value()));
  run_rounds(*other, 8, 3, 9);
}

/// A rank of each node publishes late; the others sleep much longer than that unless they are called.
TEST(NodeSegment, SleepersAreCalled) {
  auto slots = SegmentSlots::make(world(), 8);
  ASSERT_TRUE(test::all_ranks_ok(slots.has_value()));
  NodeSegment& segment = slots->segment();
  const int members = static_cast<int>(slots->layout().members.size());
  for (int round = 0; round < 3 * members; ++round) {
    const int late = round % members;
    slots->begin();
    const auto start = std::chrono::steady_clock::now();
    if (slots->layout().me == late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    slots->publish();
    segment.wake_sleepers();
    for (int m = 0; m < members; ++m)
      while (!slots->published(m)) segment.sleep_unless([&] { return slots->published(m); }, 20'000'000'000);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "round " << round;
  }
  world().barrier();
  const auto start = std::chrono::steady_clock::now();
  segment.sleep_unless([] { return true; }, 20'000'000'000);  // nothing to wait for
  segment.sleep_unless([] { return false; }, 1'000'000);      // nobody calls
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(SegmentSlots, NoRoomIsSaidOnAllRanks) {
  EXPECT_FALSE(SegmentSlots::make(world(), NodeSegment::kBytes).has_value());
  auto half = SegmentSlots::make(world(), NodeSegment::kBytes / 4);
  ASSERT_TRUE(test::all_ranks_ok(half.has_value()));
  EXPECT_FALSE(SegmentSlots::make(world(), NodeSegment::kBytes / 3).has_value());
  half.reset();
  EXPECT_TRUE(SegmentSlots::make(world(), NodeSegment::kBytes / 3).has_value());
}

TEST(SegmentSlots, OutlivesTheUsersCommunicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  auto slots = SegmentSlots::make(Communicator::of(copy), 8);
  EXPECT_TRUE(slots.has_value());
  MPI_Comm_free(&copy);
  slots.reset();
}

}  // namespace
}  // namespace isohalo
