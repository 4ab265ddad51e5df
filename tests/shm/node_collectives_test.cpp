/// Collectives of a compute node against their definitions: sizes around every limit, roots, in place, orders of
/// operations, ranks that are late.

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "datatypes/error.hpp"
#include "framework/shm/collectives.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

std::unique_ptr<NodeCollectives> make() {
  return NodeCollectives::make(MPI_COMM_WORLD,
                               {.spins = test::ranks() > 2 ? 5 : 200, .hierarchy = Hierarchy(test::ranks())});
}

std::vector<std::byte> pattern(std::size_t bytes, int rank, int salt) {
  std::vector<std::byte> v(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    v[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank * 31 + salt));
  return v;
}

void be_late(test::Random& own) {
  if (own.in(0, 30) == 0) usleep(static_cast<useconds_t>(own.in(0, 500)));
}

constexpr std::size_t kSizes[] = {0, 1, 7, 8, 120, 4095, 4096, 4097, 32767, 32768, 32769, 65536, 100003, 300000};

class Moves : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(test::all_ranks_ok(c_ != nullptr)); }
  std::unique_ptr<NodeCollectives> c_ = make();
  const int p_ = test::ranks(), me_ = test::rank();
  test::Random same_{3}, own_{static_cast<std::uint64_t>(me_) + 10};
};

TEST_F(Moves, EveryCollectiveInAnyOrder) {
  for (int call = 0; call < 600; ++call) {  // half of them in few slots (NodeCollectives::choose_slots)
    if (call == 400) c_->copy_once(true);
    if (call == 550) c_->copy_once(false);
    const std::size_t bytes = kSizes[same_.in(0, std::size(kSizes) - 1)];
    const int root = static_cast<int>(same_.in(0, p_ - 1));
    const auto mine = pattern(bytes, me_, call);
    std::vector<std::byte> expected, all(bytes * static_cast<std::size_t>(p_));
    for (int r = 0; r < p_; ++r) {
      const auto theirs = pattern(bytes, r, call);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    be_late(own_);
    const auto what = same_.in(0, 4);
    const bool in_place = same_.in(0, 1) == 1;
    if (what == 0) {
      auto data = mine;
      c_->run(Collective::broadcast(data.data(), bytes, root));
      ASSERT_EQ(data, pattern(bytes, root, call)) << "broadcast " << bytes;
    } else if (what == 1) {
      if (in_place) std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(bytes) * me_);
      c_->run(Collective::gather(in_place && me_ == root ? nullptr : mine.data(), bytes,
                                 me_ == root ? all.data() : nullptr, root));
      if (me_ == root) {
        ASSERT_EQ(all, expected) << "gather " << bytes;
      }
    } else if (what == 2) {
      std::byte* const place = all.data() + bytes * static_cast<std::size_t>(me_);
      if (in_place) std::copy(mine.begin(), mine.end(), place);
      c_->run(Collective::allgather(in_place ? place : mine.data(), bytes, all.data()));
      ASSERT_EQ(all, expected) << "allgather " << bytes;
    } else if (what == 3) {
      std::vector<std::byte> part(bytes);
      c_->run(Collective::scatter(me_ == root ? expected.data() : nullptr, bytes,
                                  in_place && me_ == root ? nullptr : part.data(), root));
      if (!in_place || me_ != root) {
        ASSERT_EQ(part, mine) << "scatter " << bytes;
      }
    } else {
      c_->run(Collective::barrier());
    }
  }
}

TEST_F(Moves, NobodyLeavesABarrierBeforeAllAreThere) {
  const auto now = [] {  // of the compute node
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  for (int round = 0; round < 200; ++round) {
    if (me_ == round % p_) usleep(static_cast<useconds_t>(own_.in(0, 300)));
    const double came = now();
    c_->run(Collective::barrier());
    const double left = now();
    double last = 0;
    MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_GE(left, last) << "round " << round;
  }
}

/// The definition of the order, once more: the first r pairs, then halves; first in each group of `group` ranks, if
/// that is not 0.
template <class T, class Op>
T in_order(std::vector<T> v, Op op, std::size_t group = 0) {
  if (group > 0) {
    std::vector<T> of_groups;
    for (std::size_t at = 0; at < v.size(); at += group)
      of_groups.push_back(
          in_order(std::vector<T>(v.begin() + static_cast<std::ptrdiff_t>(at),
                                  v.begin() + static_cast<std::ptrdiff_t>(std::min(v.size(), at + group))),
                   op));
    v = of_groups;
  }
  std::size_t leaves = 1;
  while (2 * leaves <= v.size()) leaves *= 2;
  std::vector<T> joined;
  const std::size_t excess = v.size() - leaves;
  for (std::size_t i = 0; i < excess; ++i) joined.push_back(op(v[2 * i], v[2 * i + 1]));
  joined.insert(joined.end(), v.begin() + static_cast<std::ptrdiff_t>(2 * excess), v.end());
  for (; joined.size() > 1;) {
    std::vector<T> next;
    for (std::size_t i = 0; i < joined.size(); i += 2) next.push_back(op(joined[i], joined[i + 1]));
    joined = next;
  }
  return joined[0];
}

/// Vectors of T with values by `value(rank, i)`, through allreduce and reduce, bit for bit.
template <class T, class Value, class Op>
void check(NodeCollectives& c, MPI_Datatype type, MPI_Op mpi_op, const Value& value, const Op& op,
           std::size_t group = 0) {
  const auto combine = Combine::of(type, mpi_op);
  ASSERT_TRUE(combine.has_value());
  const int p = test::ranks(), me = test::rank();
  test::Random own(static_cast<std::uint64_t>(me));
  int root = 0;
  for (const std::size_t count : {0, 1, 2, 3, 17, 511, 512, 513, 1000, 4095, 4096, 4099, 20011, 50000})
    for (const bool in_place : {false, true}) {
      root = (root + 1) % p;
      std::vector<T> mine(count), result(count), expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<T> all;
        for (int r = 0; r < p; ++r) all.push_back(value(r, i));
        mine[i] = all[static_cast<std::size_t>(me)];
        expected[i] = in_order(all, op, group);
      }
      const auto bytes = [](std::vector<T>& v) { return reinterpret_cast<std::byte*>(v.data()); };
      const auto same = [&](const std::vector<T>& v) {  // a long double has bytes that mean nothing
        constexpr std::size_t bytes_that_count = std::is_same_v<T, long double> ? 10 : sizeof(T);
        for (std::size_t i = 0; i < count; ++i)
          if (std::memcmp(&v[i], &expected[i], bytes_that_count) != 0) return false;
        return true;
      };
      be_late(own);
      if (in_place) result = mine;
      c.run(Collective::allreduce(in_place ? bytes(result) : bytes(mine), bytes(result), count, *combine));
      EXPECT_TRUE(same(result)) << "allreduce of " << count << (in_place ? " in place" : "");
      std::vector<T> there = in_place ? mine : std::vector<T>(count);
      c.run(Collective::reduce(in_place && me == root ? bytes(there) : bytes(mine), bytes(there), count, *combine,
                               root));
      EXPECT_TRUE(me != root || same(there)) << "reduce of " << count << " to " << root;
    }
}

double rough(int rank, std::size_t i) {  // sums that round, and so tell orders apart
  const double x = static_cast<double>((static_cast<std::size_t>(rank) * 7919 + i * 104729) % 10007) - 5003.0;
  return x * (i % 3 == 0 ? 1e10 : 1e-3);
}

class Reductions : public Moves {};

TEST_F(Reductions, HaveOneOrder) {
  check<double>(*c_, MPI_DOUBLE, MPI_SUM, rough, std::plus<>());
  check<float>(
      *c_, MPI_FLOAT, MPI_PROD,
      [](int r, std::size_t i) { return 1.0f + 0.37f * static_cast<float>(r) / static_cast<float>(i + 1); },
      std::multiplies<>());
  check<long double>(
      *c_, MPI_LONG_DOUBLE, MPI_SUM,
      [](int r, std::size_t i) { return static_cast<long double>(static_cast<std::size_t>(r) + i); },
      std::plus<>());
  const auto whole = [](int r, std::size_t i) {
    return static_cast<std::int32_t>((i * 31 + static_cast<std::size_t>(r) * 17) % 1000) - 500;
  };
  check<std::int32_t>(*c_, MPI_INT, MPI_MAX, whole, [](auto a, auto b) { return std::max(a, b); });
  check<std::int32_t>(*c_, MPI_INT, MPI_MIN, whole, [](auto a, auto b) { return std::min(a, b); });
  check<std::int32_t>(*c_, MPI_INT, MPI_BXOR, whole, [](auto a, auto b) { return a ^ b; });
  check<std::int16_t>(
      *c_, MPI_SHORT, MPI_SUM, [&](int r, std::size_t i) { return static_cast<std::int16_t>(whole(r, i)); },
      [](auto a, auto b) { return static_cast<std::int16_t>(a + b); });
}

/// (a, b) then (c, d) as functions x -> a x + b modulo a prime: associative, does not commute.
struct Affine {
  std::int64_t a, b;
};
constexpr std::int64_t kPrime = 1000003;
Affine then(Affine f, Affine g) {
  return {f.a * g.a % kPrime, (g.a * f.b + g.b) % kPrime};
}

TEST_F(Reductions, OperationsOfUsersNeedNotCommute) {
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(
      [](void* in, void* inout, int* n, MPI_Datatype*) {
        for (int i = 0; i < *n; ++i) {  // of single numbers: digits of a two-part function
          std::int64_t x[2], *a = static_cast<std::int64_t*>(in) + i, *b = static_cast<std::int64_t*>(inout) + i;
          x[0] = *a, x[1] = *b;
          const Affine f{x[0] / kPrime, x[0] % kPrime}, g{x[1] / kPrime, x[1] % kPrime}, h = then(f, g);
          *b = h.a * kPrime + h.b;
        }
      },
      0, &op);
  const auto joined = [](std::int64_t x, std::int64_t y) {
    const Affine h = then({x / kPrime, x % kPrime}, {y / kPrime, y % kPrime});
    return h.a * kPrime + h.b;
  };
  const auto value = [](int r, std::size_t i) {
    return static_cast<std::int64_t>((static_cast<std::size_t>(r) * 97 + i * 13 + 2) % 1000) * kPrime + r + 1;
  };
  check<std::int64_t>(*c_, MPI_INT64_T, op, value, joined);
  c_->copy_once(true);
  check<std::int64_t>(*c_, MPI_INT64_T, op, value, joined);
  // Over the order of ranks.
  std::int64_t mine = value(me_, 0), result = 0, expected = value(0, 0);
  for (int r = 1; r < p_; ++r) expected = joined(expected, value(r, 0));
  c_->run(Collective::allreduce(reinterpret_cast<std::byte*>(&mine), reinterpret_cast<std::byte*>(&result), 1,
                                *Combine::of(MPI_INT64_T, op)));
  EXPECT_EQ(result, expected);
  MPI_Op_free(&op);
}

const char* const kAlgorithms[] = {"flat",    "tree",      "tree+2@1", "tiled",
                                   "tiled@1", "tiled+2@1", "cyclic",   "dissemination"};

TEST_F(Reductions, HaveOneOrderWhateverTheAlgorithm) {
  const auto group = static_cast<std::size_t>((p_ + 1) / 2);
  const auto h = Hierarchy::of_text("2x" + std::to_string(group), p_);
  for (const char* algorithm : kAlgorithms) {
    if (h.levels() == 1 && NodeAlgorithm::of_text(algorithm).level > 0) continue;
    SCOPED_TRACE(algorithm);
    const auto c = NodeCollectives::make(MPI_COMM_WORLD, {.spins = 5, .hierarchy = h, .algorithm = algorithm});
    ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
    check<double>(*c, MPI_DOUBLE, MPI_SUM, rough, std::plus<>(), h.levels() == 1 ? 0 : group);
    check<std::int64_t>(
        *c, MPI_INT64_T, MPI_BXOR,
        [](int r, std::size_t i) { return static_cast<std::int64_t>(i * 77 + static_cast<std::size_t>(r) * 1001); },
        [](auto a, auto b) { return a ^ b; });
    auto data = pattern(100000, me_, 6);
    c->run(Collective::broadcast(data.data(), data.size(), 0));
    EXPECT_EQ(data, pattern(100000, 0, 6));
  }
}

TEST_F(Reductions, OfOtherArities) {
  for (const char* algorithm : {"tree-3", "flat-4", "tiled-3", "tree-8"}) {
    const auto c =
        NodeCollectives::make(MPI_COMM_WORLD, {.spins = 5, .hierarchy = Hierarchy(p_), .algorithm = algorithm});
    ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
    check<std::int64_t>(
        *c, MPI_INT64_T, MPI_SUM,
        [](int r, std::size_t i) { return static_cast<std::int64_t>(i + static_cast<std::size_t>(r)); },
        std::plus<>());
    auto data = pattern(70000, me_, 1);
    c->run(Collective::broadcast(data.data(), data.size(), p_ - 1));
    EXPECT_EQ(data, pattern(70000, p_ - 1, 1));
  }
}

TEST_F(Reductions, InRankOrderWhereTheHierarchyIsNot) {
  std::vector<std::vector<std::int64_t>> odd_and_even;
  for (int r = 0; r < p_; ++r) odd_and_even.push_back({r % 2});
  const auto c =
      NodeCollectives::make(MPI_COMM_WORLD, {.spins = 5, .hierarchy = Hierarchy::of_places(odd_and_even)});
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  MPI_Op right = MPI_OP_NULL;
  const auto take_right = [](void*, void*, int*, MPI_Datatype*) {};
  MPI_Op_create(take_right, 0, &right);
  for (int last = 0; last < 2; ++last) {  // the last rank's in rank order, an odd one's in the hierarchy's
    std::int64_t mine = me_, result = -1;
    const auto op = Combine::of(MPI_INT64_T, right);
    if (last == 0)
      c->run(Collective::allreduce(reinterpret_cast<std::byte*>(&mine), reinterpret_cast<std::byte*>(&result), 1,
                                   *op));
    else
      c->run(Collective::reduce(reinterpret_cast<std::byte*>(&mine), reinterpret_cast<std::byte*>(&result), 1, *op,
                                p_ / 2));
    if (last == 0 || me_ == p_ / 2) {
      EXPECT_EQ(result, p_ - 1);
    }
  }
  check<std::int64_t>(
      *c, MPI_INT64_T, MPI_SUM,
      [](int r, std::size_t i) { return static_cast<std::int64_t>(i * static_cast<std::size_t>(r)); },
      std::plus<>());
  c->copy_once(true);
  std::vector<std::int64_t> mine(10000, me_), result(10000, -1);
  c->run(Collective::allreduce(reinterpret_cast<std::byte*>(mine.data()),
                               reinterpret_cast<std::byte*>(result.data()), mine.size(),
                               *Combine::of(MPI_INT64_T, right)));
  EXPECT_EQ(result, std::vector<std::int64_t>(10000, p_ - 1));
  MPI_Op_free(&right);
}

TEST_F(Reductions, HaveOneOrderCopiedOnce) {
  const auto group = static_cast<std::size_t>((p_ + 1) / 2);
  const auto h = Hierarchy::of_text("2x" + std::to_string(group), p_);
  const auto c = NodeCollectives::make(MPI_COMM_WORLD, {.spins = 5, .hierarchy = h});
  ASSERT_TRUE(test::all_ranks_ok(c != nullptr));
  c->copy_once(true);
  const bool allowed = c->copies_once();
  check<double>(*c, MPI_DOUBLE, MPI_SUM, rough, std::plus<>(), h.levels() == 1 ? 0 : group);
  check<long double>(
      *c, MPI_LONG_DOUBLE, MPI_SUM, [](int r, std::size_t i) { return static_cast<long double>(rough(r, i)); },
      std::plus<>(), h.levels() == 1 ? 0 : group);
  // Longer than what is combined before all meet, by less than an element of each.
  const std::size_t count = (static_cast<std::size_t>(p_) << 17) + 3, bytes = count * sizeof(double);
  std::vector<double> mine(count), by_slots(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = rough(me_, i);
  const auto data = [](std::vector<double>& v) { return reinterpret_cast<std::byte*>(v.data()); };
  const auto sum = Combine::of(MPI_DOUBLE, MPI_SUM);
  c->copy_once(false);
  c->run(Collective::allreduce(data(mine), data(by_slots), count, *sum));
  c->copy_once(true);
  for (const bool in_place : {false, true}) {
    std::vector<double> result = in_place ? mine : std::vector<double>(count);
    c->run(Collective::allreduce(in_place ? data(result) : data(mine), data(result), count, *sum));
    EXPECT_EQ(std::memcmp(data(result), data(by_slots), bytes), 0) << (in_place ? "in place" : "");
    result = mine;
    c->run(Collective::reduce(in_place && me_ == p_ - 1 ? data(result) : data(mine), data(result), count, *sum,
                              p_ - 1));
    EXPECT_EQ(std::memcmp(data(result), data(me_ == p_ - 1 ? by_slots : mine), bytes), 0) << in_place;
  }
  EXPECT_EQ(c->copies_once(), allowed) << "a read was refused";
}

TEST_F(Reductions, ChoicesByMeasurementChangeNoBits) {
  const auto before = c_->costs().at(1).latency_ns;
  for (int k = 0; k < 120; ++k) {  // in the course of which the ranks are measured
    double mine = rough(me_, static_cast<std::size_t>(k)), result = 0;
    std::vector<double> all;
    for (int r = 0; r < p_; ++r) all.push_back(rough(r, static_cast<std::size_t>(k)));
    c_->run(Collective::allreduce(reinterpret_cast<std::byte*>(&mine), reinterpret_cast<std::byte*>(&result), 1,
                                  *Combine::of(MPI_DOUBLE, MPI_SUM)));
    EXPECT_EQ(result, in_order(all, std::plus<>()));
  }
  if (p_ > 1) {
    EXPECT_NE(c_->costs().at(1).latency_ns, before);
  }
  check<double>(*c_, MPI_DOUBLE, MPI_SUM, rough, std::plus<>());
}

TEST(NodeCollectives, RefuseWhatThereIsNot) {
  for (const char* none : {"fastest", "dissemination-3", "tree+3"})
    EXPECT_THROW(
        NodeCollectives::make(MPI_COMM_WORLD, {.spins = 5, .hierarchy = {}, .place = {}, .algorithm = none}),
        UsageError);
}

TEST(Combine, TakesWhatMpiDefinesAndNothingElse) {
  EXPECT_TRUE(Combine::of(MPI_DOUBLE_INT, MPI_MAXLOC));
  EXPECT_TRUE(Combine::of(MPI_BYTE, MPI_BOR));
  EXPECT_TRUE(Combine::of(MPI_C_DOUBLE_COMPLEX, MPI_PROD));
  EXPECT_FALSE(Combine::of(MPI_C_DOUBLE_COMPLEX, MPI_MAX));
  EXPECT_FALSE(Combine::of(MPI_BYTE, MPI_SUM));
  EXPECT_FALSE(Combine::of(MPI_DOUBLE, MPI_BAND));
  EXPECT_FALSE(Combine::of(MPI_DOUBLE, MPI_REPLACE));
  EXPECT_FALSE(Combine::of(MPI_DATATYPE_NULL, MPI_SUM));
  EXPECT_FALSE(Combine::of(MPI_CHAR, MPI_MAX));
  MPI_Op op = MPI_OP_NULL;  // what a user's operation does is the user's
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op);
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  EXPECT_TRUE(Combine::of(MPI_CHAR, op));
  MPI_Op last_letter = MPI_OP_NULL;
  MPI_Op_create(
      [](void* in, void* in_out, int* n, MPI_Datatype*) {
        for (int i = 0; i < *n; ++i)
          static_cast<char*>(in_out)[i] = std::max(static_cast<char*>(in)[i], static_cast<char*>(in_out)[i]);
      },
      1, &last_letter);
  const auto latest = Combine::of(MPI_CHAR, last_letter);
  const auto c = make();
  ASSERT_TRUE(test::all_ranks_ok(latest && c));
  std::string word = "aaaa";
  word[static_cast<std::size_t>(test::rank()) % 4] = static_cast<char>('b' + test::rank());
  auto* const letters = reinterpret_cast<std::byte*>(word.data());
  c->run(Collective::allreduce(letters, letters, word.size(), *latest));
  std::string expected = "aaaa";
  for (int r = 0; r < test::ranks(); ++r) expected[static_cast<std::size_t>(r) % 4] = static_cast<char>('b' + r);
  EXPECT_EQ(word, expected);
  MPI_Op_free(&last_letter);
  EXPECT_TRUE(Combine::of(MPI_WCHAR, op));
  EXPECT_FALSE(Combine::of(pair, op));
  MPI_Type_free(&pair);
  MPI_Op_free(&op);
}

TEST(NodeCollectives, LeaveNothingBehind) {
  make();
  const auto before = test::open_files();
  for (int k = 0; k < 20; ++k) make()->run(Collective::barrier());
  EXPECT_EQ(test::open_files(), before);
}

}  // namespace
}  // namespace isohalo
