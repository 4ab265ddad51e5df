/// Boards in shared memory: rounds, reuse of the memory, no room, several compute nodes.

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

TEST(NodeArena, LayoutCoversAllRanks) {
  const auto arena = NodeArena::of(world());
  ASSERT_TRUE(test::all_ranks_ok(arena != nullptr));
  const NodeLayout& l = arena->layout();
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
  EXPECT_EQ(NodeArena::of(world()), arena);  // once per communicator
}

/// Each member publishes (rank, round) and checks what all others published.
void run_rounds(NodeBoard& board, std::size_t words, int rounds, std::int64_t salt) {
  const NodeLayout& l = board.layout();
  for (int round = 0; round < rounds; ++round) {
    board.begin();
    std::vector<std::int64_t> mine(words, salt + 1000 * round + test::rank());
    std::memcpy(board.mine(), mine.data(), 8 * words);
    board.publish();
    for (std::size_t m = 0; m < l.members.size(); ++m) {
      wait_until([&] { return board.published(static_cast<int>(m)); }, world().spins());
      std::vector<std::int64_t> theirs(words);
      std::memcpy(theirs.data(), board.read(static_cast<int>(m)), 8 * words);
      const std::vector<std::int64_t> expected(words, salt + 1000 * round + l.members[m]);
      ASSERT_EQ(theirs, expected) << "round " << round;
    }
  }
}

TEST(NodeBoard, ManyRounds) {
  for (const std::size_t words : {1u, 7u, 8u, 100u}) {
    auto board = NodeBoard::make(world(), 8 * words);
    ASSERT_TRUE(test::all_ranks_ok(board.has_value()));
    run_rounds(*board, words, 500, 0);
  }
}

TEST(NodeBoard, MemoryIsUsedAgainAndSeveralLiveSideBySide) {
  auto kept = NodeBoard::make(world(), 64);
  ASSERT_TRUE(test::all_ranks_ok(kept.has_value()));
  run_rounds(*kept, 8, 3, 5);
  for (int again = 0; again < 40; ++again) {  // more than the arena could hold at a time
    auto board = NodeBoard::make(world(), NodeArena::kBytes / 16);
    ASSERT_TRUE(test::all_ranks_ok(board.has_value()));
    run_rounds(*board, 4, 2, 77 * again);
    run_rounds(*kept, 8, 2, again);
  }
  if (test::rank() == 0) kept.reset();  // ranks may give back at different times
  auto other = NodeBoard::make(world(), 64);
  ASSERT_TRUE(test::all_ranks_ok(other.has_value()));
  run_rounds(*other, 8, 3, 9);
}

/// A rank of each node publishes late; the others sleep much longer than that unless they are called.
TEST(NodeArena, SleepersAreCalled) {
  auto board = NodeBoard::make(world(), 8);
  ASSERT_TRUE(test::all_ranks_ok(board.has_value()));
  NodeArena& arena = board->arena();
  const int members = static_cast<int>(board->layout().members.size());
  for (int round = 0; round < 3 * members; ++round) {
    const int late = round % members;
    board->begin();
    const auto start = std::chrono::steady_clock::now();
    if (board->layout().me == late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    board->publish();
    arena.wake_sleepers();
    for (int m = 0; m < members; ++m)
      while (!board->published(m)) arena.sleep_unless([&] { return board->published(m); }, 20'000'000'000);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "round " << round;
  }
  world().barrier();
  const auto start = std::chrono::steady_clock::now();
  arena.sleep_unless([] { return true; }, 20'000'000'000);  // nothing to wait for
  arena.sleep_unless([] { return false; }, 1'000'000);      // nobody calls
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(NodeBoard, NoRoomIsSaidOnAllRanks) {
  EXPECT_FALSE(NodeBoard::make(world(), NodeArena::kBytes).has_value());
  auto half = NodeBoard::make(world(), NodeArena::kBytes / 4);
  ASSERT_TRUE(test::all_ranks_ok(half.has_value()));
  EXPECT_FALSE(NodeBoard::make(world(), NodeArena::kBytes / 3).has_value());
  half.reset();
  EXPECT_TRUE(NodeBoard::make(world(), NodeArena::kBytes / 3).has_value());
}

TEST(NodeBoard, OutlivesTheUsersCommunicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  auto board = NodeBoard::make(Communicator::of(copy), 8);
  EXPECT_TRUE(board.has_value());
  MPI_Comm_free(&copy);
  board.reset();
}

}  // namespace
}  // namespace isohalo
