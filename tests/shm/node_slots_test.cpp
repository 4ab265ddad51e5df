/// Slots in shared memory: rounds, reuse of the memory, no room, several compute nodes.

#include "framework/shm/node_slots.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

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

TEST(Node, LayoutCoversAllRanks) {
  const auto found = Node::of(world());
  const NodeLayout& l = found->layout();
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
  for (int r = -1; r <= test::ranks(); ++r)
    EXPECT_EQ(found->holds(r), std::find(l.members.begin(), l.members.end(), r) != l.members.end());
  EXPECT_EQ(found->max(test::rank()), l.members.back());
  EXPECT_EQ(Node::of(world()), found);  // once per communicator
}

/// Each member publishes (rank, round) and checks what all others published.
void run_rounds(NodeSlots& slots, std::size_t words, int rounds, std::int64_t salt) {
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

TEST(NodeSlots, ManyRounds) {
  for (const std::size_t words : {1u, 7u, 8u, 100u}) {
    auto slots = NodeSlots::make(world(), 8 * words);
    ASSERT_TRUE(test::all_ranks_ok(slots != nullptr));
    run_rounds(*slots, words, 500, 0);
  }
}

TEST(NodeSlots, SeveralLiveSideBySideAndLeaveNothing) {
  auto kept = NodeSlots::make(world(), 64);
  ASSERT_TRUE(test::all_ranks_ok(kept != nullptr));
  run_rounds(*kept, 8, 3, 5);
  const auto before = test::open_files();
  for (int again = 0; again < 40; ++again) {
    auto slots = NodeSlots::make(world(), 1 << 14);
    ASSERT_TRUE(test::all_ranks_ok(slots != nullptr));
    run_rounds(*slots, 4, 2, 77 * again);
    run_rounds(*kept, 8, 2, again);
  }
  EXPECT_EQ(test::open_files(), before);
  if (test::rank() == 0) kept.reset();  // ranks may give back at different times
  auto other = NodeSlots::make(world(), 64);
  ASSERT_TRUE(test::all_ranks_ok(other != nullptr));
  run_rounds(*other, 8, 3, 9);
}

/// A rank of each node publishes late; the others sleep much longer than that unless they are called.
TEST(NodeSlots, SleepersAreCalled) {
  auto slots = NodeSlots::make(world(), 8);
  ASSERT_TRUE(test::all_ranks_ok(slots != nullptr));
  const int members = static_cast<int>(slots->layout().members.size());
  for (int round = 0; round < 3 * members; ++round) {
    const int late = round % members;
    slots->begin();
    const auto start = std::chrono::steady_clock::now();
    if (slots->layout().me == late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    slots->publish();
    slots->sleepers().wake();
    for (int m = 0; m < members; ++m)
      while (!slots->published(m)) slots->sleepers().sleep_unless([&] { return slots->published(m); }, 20'000'000'000);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "round " << round;
  }
  world().barrier();
  const auto start = std::chrono::steady_clock::now();
  slots->sleepers().sleep_unless([] { return true; }, 20'000'000'000);  // nothing to wait for
  slots->sleepers().sleep_unless([] { return false; }, 1'000'000);      // nobody calls
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

/// What one rank alone cannot get none has.
TEST(NodeSlots, NoRoomIsSaidOnAllRanks) {
  EXPECT_EQ(NodeSlots::make(world(), NodeSlots::kMostBytes + 1), nullptr);
  rlimit whole{};
  getrlimit(RLIMIT_FSIZE, &whole);
  rlimit small = whole;
  small.rlim_cur = 4096;
  if (test::rank() == test::ranks() - 1) setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_EQ(NodeSlots::make(world(), 1 << 14), nullptr);
  setrlimit(RLIMIT_FSIZE, &whole);
  EXPECT_NE(NodeSlots::make(world(), 1 << 14), nullptr);
}

TEST(NodeSlots, OutlivesTheUsersCommunicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  auto slots = NodeSlots::make(Communicator::of(copy), 8);
  EXPECT_NE(slots, nullptr);
  MPI_Comm_free(&copy);
  slots.reset();
}

}  // namespace
}  // namespace isohalo
