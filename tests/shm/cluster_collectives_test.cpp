/// Collectives over several compute nodes (MPICH plays them: MPIR_CVAR_NUM_CLIQUES, ISOHALO_TEST_NODES says how
/// many) against their definitions, bit for bit.

#include "framework/shm/cluster_collectives.hpp"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "datatypes/error.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

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
    c->run(Collective::allreduce(bytes(mine), bytes(result), count, sum));
    EXPECT_TRUE(same_bits(result, expected)) << "allreduce of " << count;
    root = (root + 1) % p;
    c->run(Collective::reduce(bytes(mine), bytes(there), count, sum, root));
    if (me == root) {
      EXPECT_TRUE(same_bits(there, expected)) << "reduce of " << count;
    }
    result = mine;
    c->run(Collective::allreduce(bytes(result), bytes(result), count, sum));
    EXPECT_TRUE(same_bits(result, expected)) << "in place";
    c->run(Collective::barrier());
    c->run(Collective::broadcast(bytes(mine), 8 * count, root));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(mine[i], rough(root, i)) << "broadcast of " << count;
  }
}

std::unique_ptr<ClusterCollectives> make(MPI_Comm comm, int spins = 5) {
  return ClusterCollectives::make(comm, {.spins = spins, .hierarchy = {}, .place = {}, .algorithm = {}});
}

/// Gather, scatter and allgather, also where a node's ranks are not consecutive; blocks that are there already.
void check_blocks(MPI_Comm comm) {
  const auto c = make(comm);
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
      c->run(Collective::gather(here && in_place ? nullptr : bytes(mine), 8 * count, here ? bytes(all) : nullptr,
                                root));
      if (here) {
        EXPECT_EQ(all, expected) << "gather of " << count;
      }
      std::fill(mine.begin(), mine.end(), -1);
      c->run(Collective::scatter(here ? bytes(expected) : nullptr, 8 * count,
                                 here && in_place ? nullptr : bytes(mine), root));
      if (!(here && in_place)) {
        EXPECT_EQ(mine, filled(me)) << "scatter of " << count;
      }
      mine = filled(me);
      std::fill(all.begin(), all.end(), -1);
      if (count > 0 && in_place) std::memcpy(place, mine.data(), 8 * count);
      c->run(Collective::allgather(in_place ? place : bytes(mine), 8 * count, bytes(all)));
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

std::vector<double> filled(std::size_t count, int rank, int salt) {
  std::vector<double> v(count);
  for (std::size_t i = 0; i < count; ++i)
    v[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(salt)) % 1000) + rank;
  return v;
}

/// In the same place, which requests know.
void fill(std::vector<double>& v, int rank, int salt) {
  const auto values = filled(v.size(), rank, salt);
  std::copy(values.begin(), values.end(), v.begin());
}

/// Each collective as a request that is begun again and again, with calls in between, ended in different orders on
/// different ranks.
TEST(ClusterCollectives, RequestsEndInTheirOrder) {
  using Request = ClusterCollectives::Request;
  const auto c = make(MPI_COMM_WORLD);
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  const int p = test::ranks(), me = test::rank(), root = p - 1;
  const bool here = me == root;
  const auto sum = *Combine::of(MPI_DOUBLE, MPI_SUM);
  constexpr std::size_t n = 9000, part = 3000;
  std::vector<double> mine(n), sums(n), at_root(n), data(30000), block(part),
      all(part * static_cast<std::size_t>(p)), parts(all.size()), mine_of_parts(part), gathered(all.size());
  std::vector<Request> r;
  r.push_back(c->request(Collective::allreduce(bytes(mine), bytes(sums), n, sum)));
  r.push_back(c->request(Collective::broadcast(bytes(data), 8 * data.size(), root)));
  r.push_back(c->request(Collective::allgather(bytes(block), 8 * part, bytes(all))));
  r.push_back(c->request(Collective::reduce(bytes(mine), bytes(at_root), n, sum, root)));
  r.push_back(c->request(Collective::scatter(bytes(parts), 8 * part, bytes(mine_of_parts), root)));
  r.push_back(c->request(Collective::gather(bytes(block), 8 * part, bytes(gathered), root)));
  r.push_back(c->request(Collective::barrier()));
  test::Random own(static_cast<std::uint64_t>(me) + 1);
  for (int turn = 0; turn < 20; ++turn) {
    fill(mine, me, turn);
    fill(data, here ? me : -1, turn + 1);
    fill(block, me, turn + 2);
    for (int q = 0; q < p && here; ++q) {
      const auto theirs = filled(part, q, turn + 3);
      std::copy(theirs.begin(), theirs.end(), parts.begin() + static_cast<std::ptrdiff_t>(part) * q);
    }
    if (own.in(0, 5) == 0) usleep(static_cast<useconds_t>(own.in(0, 500)));
    for (std::size_t k = 0; k < r.size(); ++k) {
      r[k].start();
      if (turn % 3 == 0 && k == 2) c->run(Collective::barrier());  // ends those before it
    }
    if (turn % 2 == 0) {
      while (!r.back().test()) usleep(10);
      for (auto& request : r) EXPECT_TRUE(request.test());
    }
    for (std::size_t k = 0; k < r.size(); ++k) r[(k + static_cast<std::size_t>(me)) % r.size()].wait();
    std::vector<double> expected_sums(n), expected_all;
    for (int q = 0; q < p; ++q) {
      const auto theirs = filled(n, q, turn), theirs_all = filled(part, q, turn + 2);
      for (std::size_t i = 0; i < n; ++i) expected_sums[i] += theirs[i];
      expected_all.insert(expected_all.end(), theirs_all.begin(), theirs_all.end());
    }
    EXPECT_EQ(sums, expected_sums);
    EXPECT_EQ(data, filled(data.size(), root, turn + 1));
    EXPECT_EQ(all, expected_all);
    EXPECT_EQ(mine_of_parts, filled(part, me, turn + 3));
    if (here) {
      EXPECT_EQ(at_root, expected_sums);
      EXPECT_EQ(gathered, expected_all);
    }
  }
  if (p == 1) return;
  Request twice = c->request(Collective::barrier());
  if (me == 0) {
    twice.start();  // waits for the others, who come later
    EXPECT_THROW(twice.start(), UsageError);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (me != 0) twice.start();
  Request moved = std::move(twice);
  EXPECT_TRUE(twice.test());
  EXPECT_THROW(twice.start(), UsageError);
}  // what is active is waited for

/// The end of one request is waited for while a later one has begun, which ends only after that.
TEST(ClusterCollectives, AWaitIsForItsRequestAlone) {
  for (const int spins : {5, 50, 2000}) {
    const auto c = make(MPI_COMM_WORLD, spins);
    ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
    const int last = test::ranks() - 1;
    auto first = c->request(Collective::barrier()), second = c->request(Collective::barrier());
    test::Random own(static_cast<std::uint64_t>(spins + test::rank()));
    for (int round = 0; round < (spins > 5 && test::ranks() > 2 ? 20 : 300); ++round) {
      if (test::rank() < last) {
        first.start(), second.start();
        first.wait();
        if (test::rank() == 0) MPI_Send(&round, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
      } else {
        if (own.in(0, 3) == 0) usleep(static_cast<useconds_t>(own.in(0, 200)));
        int told = round;
        first.start();
        first.wait();
        if (last > 0) MPI_Recv(&told, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(told, round);
        second.start();
      }
      second.wait();
    }
  }
}

/// Ranks that test requests in a loop: of other objects than the one that another rank waits for, and with a
/// message of MPI's that another rank needs first.
TEST(ClusterCollectives, TestsMoveEverythingOn) {
  const auto a = make(MPI_COMM_WORLD), b = make(MPI_COMM_WORLD);
  ASSERT_TRUE(test::all_ranks_ok(a && b));
  const int last = test::ranks() - 1;
  std::vector<double> of_a(200000), of_b(200000);
  auto in_a = a->request(Collective::broadcast(bytes(of_a), 8 * of_a.size(), 0)),
       in_b = b->request(Collective::broadcast(bytes(of_b), 8 * of_b.size(), last));
  fill(of_a, test::rank(), 1), fill(of_b, test::rank(), 2);
  in_a.start(), in_b.start();
  auto &mine = test::rank() % 2 ? in_b : in_a, &other = test::rank() % 2 ? in_a : in_b;
  while (!mine.test()) usleep(10);
  other.wait();
  EXPECT_EQ(of_a, filled(of_a.size(), 0, 1));
  EXPECT_EQ(of_b, filled(of_b.size(), last, 2));
  if (last == 0) return;
  std::vector<double> message(std::size_t{1} << 21);
  MPI_Request sent = MPI_REQUEST_NULL;
  if (test::rank() == 0)
    MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_DOUBLE, last, 0, MPI_COMM_WORLD, &sent);
  if (test::rank() == last)
    MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  in_a.start();
  while (!in_a.test()) usleep(10);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

/// Requests on two communicators are waited for in opposite orders; they are longer than what fits into slots, so
/// that none ends before all ranks go on with it.
TEST(ClusterCollectives, RequestsOfSeveralCommunicatorsGoOnTogether) {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -test::rank(), &reversed);
  const auto a = make(MPI_COMM_WORLD), b = make(reversed);
  ASSERT_TRUE(test::all_ranks_ok(a && b));
  const auto sum = *Combine::of(MPI_DOUBLE, MPI_SUM);
  std::vector<double> of_a(200000), of_b(200000);
  auto in_a = a->request(Collective::allreduce(bytes(of_a), bytes(of_a), of_a.size(), sum));
  auto in_b = b->request(Collective::broadcast(bytes(of_b), 8 * of_b.size(), test::ranks() - 1));
  for (int turn = 0; turn < 4; ++turn) {
    fill(of_a, 0, turn);
    fill(of_b, test::rank() == 0 ? 5 : 0, turn);
    in_a.start(), in_b.start();
    if (test::rank() % 2 == 0)
      in_b.wait(), in_a.wait();
    else
      in_a.wait(), in_b.wait();
    EXPECT_EQ(of_b, filled(of_b.size(), 5, turn));
    for (std::size_t i = 0; i < of_a.size(); i += 997)
      ASSERT_EQ(of_a[i], test::ranks() * filled(i + 1, 0, turn)[i]);
  }
  MPI_Comm_free(&reversed);
}

/// (a, b) op (c, d) = (a c, a d + b) of small whole numbers: maps x -> a x + b, one after the other.
void compose(void* left, void* right, int* length, MPI_Datatype*) {
  auto* const l = static_cast<std::int32_t*>(left);
  auto* const r = static_cast<std::int32_t*>(right);
  for (int i = 0; i + 1 < *length; i += 2) {
    r[i + 1] = l[i] * r[i + 1] + l[i + 1];
    r[i] = l[i] * r[i];
  }
}

TEST(ClusterCollectives, ReduceByOperationsThatDoNotCommuteInRankOrderOrRefuse) {
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(compose, 0, &op);
  const auto composed = *Combine::of(MPI_INT32_T, op);
  MPI_Comm mixed = MPI_COMM_NULL, by_nodes = MPI_COMM_NULL, node = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, test::rank() % 2 * test::ranks() + test::rank(), &mixed);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int leader = test::rank();
  MPI_Bcast(&leader, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  MPI_Comm_split(MPI_COMM_WORLD, 0, leader * test::ranks() + test::rank(), &by_nodes);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, mixed, by_nodes}) {
    const auto c = make(comm);
    ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
    if (comm == by_nodes) {
      EXPECT_TRUE(c->in_rank_order());
    }
    int me = 0;
    MPI_Comm_rank(comm, &me);
    const auto map_of = [](int rank) { return std::array<std::int32_t, 2>{rank % 3 == 1 ? -1 : 1, rank + 1}; };
    auto mine = map_of(me), result = mine;
    auto* const from = reinterpret_cast<std::byte*>(mine.data());
    auto* const to = reinterpret_cast<std::byte*>(result.data());
    if (!c->in_rank_order()) {
      EXPECT_THROW(c->run(Collective::allreduce(from, to, 2, composed)), UsageError);
      EXPECT_THROW(c->request(Collective::reduce(from, to, 2, composed, 0)), UsageError);
      continue;
    }
    auto expected = map_of(0);
    for (int r = 1; r < test::ranks(); ++r) {
      auto next = map_of(r);
      int two = 2;
      compose(expected.data(), next.data(), &two, nullptr);
      expected = next;
    }
    c->run(Collective::allreduce(from, to, 2, composed));
    EXPECT_EQ(result, expected);
  }
  const auto c = make(MPI_COMM_WORLD);
  EXPECT_THROW(c->run(Collective::broadcast(nullptr, 0, test::ranks())), UsageError);
  EXPECT_THROW(c->request(Collective::gather(nullptr, 0, nullptr, -1)), UsageError);
  MPI_Comm_free(&mixed);
  MPI_Comm_free(&by_nodes);
  MPI_Op_free(&op);
}

/// By a clock that the ranks of this machine share; MPI's need not be one.
std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

TEST(ClusterCollectives, NobodyLeavesABarrierBeforeAllAreThere) {
  const auto c = make(MPI_COMM_WORLD);
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  test::Random own(static_cast<std::uint64_t>(test::rank()) + 1);
  for (int turn = 0; turn < 50; ++turn) {
    usleep(static_cast<useconds_t>(own.in(0, 300)));
    const std::int64_t came = now_ns();
    c->run(Collective::barrier());
    const std::int64_t left = now_ns();
    std::int64_t last = 0;
    MPI_Allreduce(&came, &last, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_GE(left, last);
  }
}

}  // namespace
}  // namespace isohalo
