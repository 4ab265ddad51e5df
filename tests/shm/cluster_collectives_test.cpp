/// Collectives over several compute nodes (MPICH plays them: MPIR_CVAR_NUM_CLIQUES, ISOHALO_TEST_NODES says how
/// many) against their definitions, bit for bit.

#include "framework/shm/cluster_collectives.hpp"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using detail::Combine;

std::byte* bytes(std::vector<double>& v) {
  return reinterpret_cast<std::byte*>(v.data());
}

/// Of vectors that are as long, and may be empty.
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

double rough(int rank, std::size_t i) {
  const double x = static_cast<double>((static_cast<std::size_t>(rank) * 7919 + i * 104729) % 10007) - 5003.0;
  return x * (i % 3 == 0 ? 1e10 : 1e-3);
}

/// Over the order of the list: the first pairs in excess of a power of two, then halves.
double in_order(std::vector<double> v) {
  std::size_t leaves = 1;
  while (2 * leaves <= v.size()) leaves *= 2;
  std::vector<double> joined;
  const std::size_t excess = v.size() - leaves;
  for (std::size_t i = 0; i < v.size(); ++i)
    if (i < 2 * excess) {
      if (i % 2 == 0) joined.push_back(v[i] + v[i + 1]);
    } else {
      joined.push_back(v[i]);
    }
  for (; joined.size() > 1;) {
    std::vector<double> next;
    for (std::size_t i = 0; i < joined.size(); i += 2) next.push_back(joined[i] + joined[i + 1]);
    joined = next;
  }
  return joined[0];
}

TEST(ClusterCollectives, HaveOneOrder) {
  const char* const expected_nodes = std::getenv("ISOHALO_TEST_NODES");
  // One place for all: no groups on a node, also where the launcher binds ranks to cores.
  const auto c =
      ClusterCollectives::make(MPI_COMM_WORLD, {.spins = 5, .hierarchy = {}, .place = {0}, .algorithm = {}});
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  const int p = test::ranks(), me = test::rank();
  const int nodes = expected_nodes ? std::min(std::atoi(expected_nodes), p) : 1;
  ASSERT_EQ(c->nodes(), nodes);
  // Which ranks share a node, as MPI has it.
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int leader = me;
  MPI_Bcast(&leader, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  std::vector<int> leader_of(static_cast<std::size_t>(p));
  MPI_Allgather(&leader, 1, MPI_INT, leader_of.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const auto sum = *Combine::of(MPI_DOUBLE, MPI_SUM);
  int root = 0;
  for (const std::size_t count : {0, 1, 2, 7, 1000, 8192, 8193, 30011, 100000}) {
    std::vector<double> mine(count), result(count), expected(count), there(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<double> of_nodes;
      for (int l = 0; l < p; ++l) {
        std::vector<double> here;
        for (int r = 0; r < p; ++r)
          if (leader_of[static_cast<std::size_t>(r)] == l) here.push_back(rough(r, i));
        if (!here.empty()) of_nodes.push_back(in_order(here));
      }
      mine[i] = rough(me, i);
      expected[i] = in_order(of_nodes);
    }
    c->allreduce(bytes(mine), bytes(result), count, sum);
    EXPECT_TRUE(same_bits(result, expected)) << "allreduce of " << count;
    root = (root + 1) % p;
    c->reduce(bytes(mine), bytes(there), count, sum, root);
    if (me == root) {
      EXPECT_TRUE(same_bits(there, expected)) << "reduce of " << count;
    }
    result = mine;
    c->allreduce(bytes(result), bytes(result), count, sum);
    EXPECT_TRUE(same_bits(result, expected)) << "in place";
    c->barrier();
    c->broadcast(bytes(mine), 8 * count, root);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(mine[i], rough(root, i)) << "broadcast of " << count;
  }
}

/// Gather, scatter and allgather, also where a node's ranks are not consecutive; blocks that are there already.
void check_blocks(MPI_Comm comm) {
  const auto c = ClusterCollectives::make(comm, {.spins = 5, .hierarchy = {}, .place = {}, .algorithm = {}});
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  int p = 1, me = 0, root = 0;
  MPI_Comm_size(comm, &p);
  MPI_Comm_rank(comm, &me);
  for (const std::size_t count : {0, 1, 2, 7, 1000, 8193, 40001}) {
    const auto filled = [&](int rank) {
      std::vector<double> v(count);
      for (std::size_t i = 0; i < count; ++i) v[i] = rough(rank, i + count);
      return v;
    };
    std::vector<double> expected;
    for (int r = 0; r < p; ++r) {
      const auto part = filled(r);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    for (const bool in_place : {false, true}) {
      root = (root + 1) % p;
      const bool here = me == root;
      std::vector<double> mine = filled(me), none, all(expected.size(), -1);
      std::byte* const place = bytes(all) + static_cast<std::size_t>(me) * 8 * count;
      if (count > 0) std::memcpy(place, mine.data(), 8 * count);
      c->gather(here && in_place ? nullptr : bytes(mine), 8 * count, here ? bytes(all) : nullptr, root);
      if (here) {
        EXPECT_EQ(all, expected) << "gather of " << count;
      }
      std::fill(mine.begin(), mine.end(), -1);
      c->scatter(here ? bytes(expected) : nullptr, 8 * count, here && in_place ? nullptr : bytes(mine), root);
      if (!(here && in_place)) {
        EXPECT_EQ(mine, filled(me)) << "scatter of " << count;
      }
      mine = filled(me);
      std::fill(all.begin(), all.end(), -1);
      if (count > 0 && in_place) std::memcpy(place, mine.data(), 8 * count);
      c->allgather(in_place ? place : bytes(mine), 8 * count, bytes(all));
      EXPECT_EQ(all, expected) << "allgather of " << count;
    }
  }
}

TEST(ClusterCollectives, BlocksOfEachRank) {
  check_blocks(MPI_COMM_WORLD);
  MPI_Comm mixed = MPI_COMM_NULL;  // evens before odds: nodes are no runs of ranks
  MPI_Comm_split(MPI_COMM_WORLD, 0, test::rank() % 2 * test::ranks() + test::rank(), &mixed);
  check_blocks(mixed);
  MPI_Comm_free(&mixed);
}

/// By a clock that the ranks of this machine share; MPI's need not be one.
std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

TEST(ClusterCollectives, NobodyLeavesABarrierBeforeAllAreThere) {
  const auto c =
      ClusterCollectives::make(MPI_COMM_WORLD, {.spins = 5, .hierarchy = {}, .place = {}, .algorithm = {}});
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  test::Random own(static_cast<std::uint64_t>(test::rank()) + 1);
  for (int turn = 0; turn < 50; ++turn) {
    usleep(static_cast<useconds_t>(own.in(0, 300)));
    const std::int64_t came = now_ns();
    c->barrier();
    const std::int64_t left = now_ns();
    std::int64_t last = 0;
    MPI_Allreduce(&came, &last, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_GE(left, last);
  }
}

}  // namespace
}  // namespace isohalo
