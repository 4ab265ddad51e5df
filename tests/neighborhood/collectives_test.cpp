/// The isomorphic collectives over MPI, through the C interface: random meshes, lists, types and forms against the
/// definition, byte for byte.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <set>

#include "framework/neighborhood/iso_comm.hpp"
#include "framework/neighborhood/local_schedule.hpp"
#include "tests/neighborhood/collective_cases.hpp"
#include "tests/neighborhood/counters.hpp"

namespace isohalo {
namespace {

using test::allocations;
using test::Case;
using test::Kind;
using test::sends;

class Ops {
 public:
  Ops() { MPI_Op_create(test::ordered, 0, &ordered_); }
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;
  ~Ops() { MPI_Op_free(&ordered_); }
  MPI_Op pick(test::Random& random) const { return random.in(0, 1) ? MPI_SUM : ordered_; }

 private:
  MPI_Op ordered_ = MPI_OP_NULL;
};

constexpr isohalo_algorithm kAlgorithms[] = {ISOHALO_AUTO, ISOHALO_DIRECT, ISOHALO_COMBINING, ISOHALO_LOGARITHMIC};

TEST(Collectives, BlockingRandomCases) {
  test::Random random(1);
  const Ops ops;
  const int cases = test::ranks() > 2 ? 40 : 150;  // times eight kinds, four algorithms, two turns
  for (int n = 0; n < cases; ++n) {
    const auto setting = test::random_setting(MPI_COMM_WORLD, random);
    isohalo_neighborhood iso = nullptr;
    ASSERT_EQ(isohalo_neighborhood_create(setting->cart, setting->s, setting->relative.data(), &iso), MPI_SUCCESS);
    for (int k = 0; k < test::kKinds; ++k)
      for (const isohalo_algorithm a : kAlgorithms) {
        const auto kind = static_cast<Kind>(k);
        const bool differ = random.in(0, 1);  // block sizes between ranks, in the v and w forms
        Case c(*setting, kind, !differ, ops.pick(random), random);
        isohalo_neighborhood_set_algorithm(iso, a);
        for (int turn = 0; turn < 2; ++turn) {
          c.refill(turn);
          ASSERT_EQ(c.call(iso, nullptr, false), MPI_SUCCESS) << isohalo_error_text();
          ASSERT_EQ(c.wrong(), 0) << c.text() << ", algorithm " << a << ", turn " << turn;
        }
      }
    isohalo_neighborhood_free(&iso);
  }
}

/// Operations of all kinds and algorithms on two neighborhoods of one communicator, begun in one order and ended in
/// another, which differs between ranks.
TEST(Collectives, ManyInFlightEndedInAnyOrder) {
  test::Random random(2), mine(static_cast<std::uint64_t>(test::rank()) + 77);
  const Ops ops;
  for (int n = 0; n < 15; ++n) {
    const auto setting = test::random_setting(MPI_COMM_WORLD, random);
    isohalo_neighborhood iso[2] = {nullptr, nullptr};
    for (auto& i : iso) isohalo_neighborhood_create(setting->cart, setting->s, setting->relative.data(), &i);
    std::vector<std::unique_ptr<Case>> cases;
    std::vector<isohalo_request> requests(12, nullptr);
    for (std::size_t k = 0; k < requests.size(); ++k) {
      const auto kind = static_cast<Kind>(random.in(0, test::kKinds - 1));
      const isohalo_algorithm a = kAlgorithms[random.in(0, 3)];
      const isohalo_neighborhood on = iso[random.in(0, 1)];
      isohalo_neighborhood_set_algorithm(on, a);
      cases.push_back(std::make_unique<Case>(*setting, kind, random.in(0, 1), ops.pick(random), random));
      cases.back()->refill(static_cast<std::int64_t>(k));
      ASSERT_EQ(cases.back()->call(on, &requests[k], k % 3 == 0), MPI_SUCCESS) << isohalo_error_text();
      cases.back()->free_types();
    }
    for (std::size_t k = 0; k < requests.size(); k += 3) isohalo_start(requests[k]);
    for (auto& i : iso) isohalo_neighborhood_free(&i);  // requests keep what they need
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < requests.size(); ++k) order.push_back(k);
    for (std::size_t k = order.size(); k > 1; --k)
      std::swap(order[k - 1], order[static_cast<std::size_t>(mine.in(0, static_cast<std::int64_t>(k) - 1))]);
    for (std::size_t k : order) {
      if (mine.in(0, 1)) {
        int flag = 0;
        while (!flag) ASSERT_EQ(isohalo_test(&requests[k], &flag), MPI_SUCCESS) << isohalo_error_text();
      } else {
        ASSERT_EQ(isohalo_wait(&requests[k]), MPI_SUCCESS) << isohalo_error_text();
      }
      ASSERT_EQ(cases[k]->wrong(), 0) << cases[k]->text();
      EXPECT_EQ(requests[k] != nullptr, k % 3 == 0);
      if (requests[k]) isohalo_request_free(&requests[k]);
    }
  }
}

TEST(Collectives, PersistentStartsAllocateNothing) {
  test::Random random(3);
  const Ops ops;
  for (int n = 0; n < 20; ++n) {
    const auto setting = test::random_setting(MPI_COMM_WORLD, random);
    isohalo_neighborhood iso = nullptr;
    isohalo_neighborhood_create(setting->cart, setting->s, setting->relative.data(), &iso);
    for (const isohalo_algorithm a : kAlgorithms) {
      isohalo_neighborhood_set_algorithm(iso, a);
      const auto kind = static_cast<Kind>(random.in(0, test::kKinds - 1));
      Case c(*setting, kind, true, ops.pick(random), random);
      isohalo_request r = nullptr;
      ASSERT_EQ(c.call(iso, &r, true), MPI_SUCCESS) << isohalo_error_text();
      int flag = 0;
      isohalo_test(&r, &flag);  // inactive: complete
      EXPECT_EQ(flag, 1);
      for (int turn = 0; turn < 3; ++turn) {
        c.refill(turn);
        const long before = allocations;
        ASSERT_EQ(isohalo_start(r), MPI_SUCCESS);
        const bool waits = turn % 2 == 0;
        if (waits) isohalo_wait(&r);
        for (flag = waits; !flag;) isohalo_test(&r, &flag);
        if (turn > 0) {  // the first gives messages their size
          EXPECT_EQ(allocations - before, 0) << c.text();
        }
        ASSERT_EQ(c.wrong(), 0) << c.text() << ", algorithm " << a;
      }
      isohalo_request_free(&r);
      EXPECT_EQ(r, nullptr);
    }
    isohalo_neighborhood_free(&iso);
  }
}

TEST(Collectives, CombiningSendsAtMostOneMessagePerStep) {
  test::Random random(4);
  for (int n = 0; n < 30; ++n) {
    const auto setting = test::random_setting(MPI_COMM_WORLD, random);
    isohalo_neighborhood iso = nullptr;
    isohalo_neighborhood_create(setting->cart, setting->s, setting->relative.data(), &iso);
    for (const isohalo_algorithm a : {ISOHALO_DIRECT, ISOHALO_COMBINING, ISOHALO_LOGARITHMIC})
      for (const Kind kind : {Kind::alltoall, Kind::allgather}) {
        Case c(*setting, kind, true, MPI_SUM, random);
        c.refill(0);
        isohalo_neighborhood_set_algorithm(iso, a);
        int rounds = 0;
        long long volume = 0;
        isohalo_neighborhood_schedule(iso, a, &rounds, &volume);
        const long before = sends;
        c.call(iso, nullptr, false);
        EXPECT_LE(sends - before, rounds) << c.text() << ", algorithm " << a;
        const IsoComm same(setting->cart, setting->relative);
        const auto pattern = kind == Kind::alltoall ? Pattern::personal : Pattern::shared;
        const auto& it = same.schedule(static_cast<Algorithm>(a), pattern);
        const auto planned =
            test::messages_of(plan_local_schedule(it, setting->relative, same.neighbors().mesh(), test::rank()));
        if (a == ISOHALO_DIRECT)  // large blocks have messages of their own
          EXPECT_GE(sends - before, planned);
        else
          EXPECT_EQ(sends - before, planned);
      }
    isohalo_neighborhood_free(&iso);
  }
}

TEST(IsoComm, ChoosesByModel) {
  const test::Setting at(MPI_COMM_WORLD, {test::ranks(), 1, 1}, {1, 1, 1}, {});
  std::vector<int> moore;
  for (int a = -1; a <= 1; ++a)
    for (int b = -1; b <= 1; ++b)
      for (int c = -1; c <= 1; ++c)
        if (a || b || c) moore.insert(moore.end(), {a, b, c});
  IsoComm iso(at.cart, moore);
  const auto small = iso.choice(Pattern::personal, 8);
  ASSERT_EQ(small.figures.size(), 3u);
  EXPECT_EQ(small.figures[0].rounds, 26);
  EXPECT_EQ(small.figures[1].rounds, 6);
  EXPECT_EQ(small.figures[1].volume_blocks, 54);
  EXPECT_NE(small.reason.find("by the model"), std::string::npos);
  // On a mesh large enough for all neighbors to differ, by the rule m < (alpha / beta) (s - C) / (V - s).
  const LinkCost link{1e-6, 1e-9};
  const Mesh large({8, 8, 8}, {true, true, true});
  for (std::int64_t m : {1, 500, 713, 715, 5000}) {
    std::vector<AlgorithmFigures> figures;
    for (Algorithm a : {Algorithm::direct, Algorithm::combining})
      figures.push_back(figures_of(plan_neighbor_schedule(moore, 3, a, Pattern::personal), large, m, link));
    const double threshold = link.latency_s / link.seconds_per_byte * (26 - 6) / (54 - 26);
    EXPECT_EQ(cheapest(figures, m).algorithm,
              static_cast<double>(m) < threshold ? Algorithm::combining : Algorithm::direct)
        << m;
  }
}

/// Messages are counted; by the model small blocks want one algorithm, large ones another.
TEST(IsoComm, RunsWhatItHasChosen) {
  std::vector<int> dims(3, 0);
  MPI_Dims_create(test::ranks(), 3, dims.data());
  const std::vector<int> list = flat<3>(moore<3>(1, Self::leave_out));
  const test::Setting at(MPI_COMM_WORLD, dims, {1, 1, 1}, list);
  IsoComm iso(at.cart, list);
  std::set<Algorithm> chosen;
  for (const int n : {1, 10000}) {
    std::vector<std::int64_t> out(26 * static_cast<std::size_t>(n), test::rank()), in(out.size());
    const Algorithm a = iso.choice(Pattern::personal, 8 * n).algorithm;
    chosen.insert(a);
    const auto call =
        NeighborCall::alltoall(iso.neighbors(), out.data(), n, MPI_INT64_T, in.data(), n, MPI_INT64_T);
    iso.execute(call);
    const long before = sends;
    iso.execute(call);
    const auto& plan = iso.schedule(a, Pattern::personal);
    const auto targets = iso.neighbors().targets();
    const std::int64_t messages =
        n > 1 && a == Algorithm::direct  // too large to share one
            ? std::ssize(targets) - std::count(targets.begin(), targets.end(), test::rank())
            : test::messages_of(plan_local_schedule(plan, list, iso.neighbors().mesh(), test::rank()));
    EXPECT_EQ(sends - before, messages);
    for (std::size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(in[i], iso.neighbors().sources()[i / static_cast<std::size_t>(n)]);
  }
  if (test::ranks() == 8) {
    EXPECT_EQ(chosen.size(), 2u);
  }
}

/// Adds pairs wherever their type puts them.
void add_pairs(void* in, void* in_out, int* count, MPI_Datatype* type) {
  MPI_Aint low = 0, span = 0;
  MPI_Type_get_true_extent(*type, &low, &span);
  const auto pair_at = [low](void* base,
                             int k) -> std::int64_t& {  // by numbers: the base may be beyond all addresses
    return *reinterpret_cast<std::int64_t*>(reinterpret_cast<std::uintptr_t>(base) +
                                            static_cast<std::uintptr_t>(low) + 8 * static_cast<std::uintptr_t>(k));
  };
  for (int k = 0; k < 2 * *count; ++k) pair_at(in_out, k) += pair_at(in, k);
}

/// Rank r combines vectors of r + 1 numbers.
TEST(Collectives, ScatterReduceOfSizesThatDiffer) {
  constexpr int most = 16, offsets = 4;
  ASSERT_LT(test::ranks(), most);
  const test::Setting ring(MPI_COMM_WORLD, {test::ranks()}, {1}, {1, 2, 3, -1});
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(ring.cart, offsets, ring.relative.data(), &iso), MPI_SUCCESS);
  const int p = test::ranks(), me = test::rank();
  const auto at = [&](int offset) { return ((me + offset) % p + p) % p; };
  for (const isohalo_algorithm a : kAlgorithms) {
    isohalo_neighborhood_set_algorithm(iso, a);
    double out[offsets][most], in[most];
    int counts[offsets];
    MPI_Aint places[offsets];
    MPI_Datatype types[offsets];
    for (int i = 0; i < offsets; ++i) {
      counts[i] = at(ring.relative[static_cast<std::size_t>(i)]) + 1;
      places[i] = static_cast<MPI_Aint>(i * sizeof out[0]);
      types[i] = MPI_DOUBLE;
      for (int k = 0; k < most; ++k) out[i][k] = 100 * me + 10 * i + k;
    }
    ASSERT_EQ(isohalo_neighbor_scatter_reduce(out, counts, places, types, in, me + 1, MPI_DOUBLE, MPI_SUM, iso),
              MPI_SUCCESS)
        << a << ": " << isohalo_error_text();
    for (int k = 0; k <= me; ++k) {
      double expected = 0;
      for (int i = 0; i < offsets; ++i)
        expected += 100 * at(-ring.relative[static_cast<std::size_t>(i)]) + 10 * i + k;
      EXPECT_EQ(in[k], expected) << a;
    }
  }
  isohalo_neighborhood_free(&iso);
}

/// scatter_reduce into a result whose type holds its address, started and blocking, by all algorithms.
TEST(Collectives, ReduceIntoAbsoluteAddresses) {
  const test::Setting ring(MPI_COMM_WORLD, {test::ranks()}, {1}, {1, -1, 2});
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(ring.cart, 3, ring.relative.data(), &iso), MPI_SUCCESS);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add_pairs, 1, &op);
  std::int64_t out[3][2], in[4] = {};
  MPI_Aint address = 0;
  MPI_Get_address(&in[1], &address);
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  const int two = 2;
  MPI_Type_create_hindexed(1, &two, &address, MPI_INT64_T, &pair);
  MPI_Type_commit(&pair);
  const int counts[3] = {2, 2, 2}, p = test::ranks();
  const MPI_Aint places[3] = {0, 16, 32};
  const MPI_Datatype types[3] = {MPI_INT64_T, MPI_INT64_T, MPI_INT64_T};
  for (const isohalo_algorithm a : kAlgorithms)
    for (const bool started : {false, true}) {
      isohalo_neighborhood_set_algorithm(iso, a);
      for (int k = 0; k < 6; ++k) out[k / 2][k % 2] = 100 * test::rank() + k;
      std::fill_n(in, 4, -1);
      isohalo_request r = nullptr;
      if (started) {
        ASSERT_EQ(isohalo_ineighbor_scatter_reduce(out, counts, places, types, MPI_BOTTOM, 1, pair, op, iso, &r),
                  MPI_SUCCESS);
        ASSERT_EQ(isohalo_wait(&r), MPI_SUCCESS) << isohalo_error_text();
      } else {
        ASSERT_EQ(isohalo_neighbor_scatter_reduce(out, counts, places, types, MPI_BOTTOM, 1, pair, op, iso),
                  MPI_SUCCESS)
            << isohalo_error_text();
      }
      for (int side = 0; side < 2; ++side) {
        std::int64_t expected = 0;
        for (int k = 0; k < 3; ++k) {
          const int source = ((test::rank() - ring.relative[static_cast<std::size_t>(k)]) % p + 2 * p) % p;
          expected += 100 * source + 2 * k + side;
        }
        EXPECT_EQ(in[1 + side], expected) << "algorithm " << a << (started ? " started" : "");
      }
      EXPECT_EQ(in[0], -1);
      EXPECT_EQ(in[3], -1);
    }
  MPI_Type_free(&pair);
  MPI_Op_free(&op);
  isohalo_neighborhood_free(&iso);
}

/// Blocking calls with the same arguments are compiled once, also with derived types; but a handle may name another
/// type than before.
TEST(IsoComm, RemembersTypesUntilTheyAreFreed) {
  const test::Setting ring(MPI_COMM_WORLD, {test::ranks()}, {1}, {1});
  const IsoComm iso(ring.cart, ring.relative);
  std::vector<int> out(64), in(64);
  for (int k = 0; k < 64; ++k) out[static_cast<std::size_t>(k)] = k;
  int same_handle = 0;
  MPI_Datatype before = MPI_DATATYPE_NULL;
  for (int stride = 2; stride < 10; ++stride) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(3, 1, stride, MPI_INT, &type);
    MPI_Type_commit(&type);
    same_handle += type == before;
    before = type;
    const auto exchange = [&] {
      std::fill(in.begin(), in.end(), -1);
      const long start = test::allocations;
      iso.execute(NeighborCall::alltoall(iso.neighbors(), out.data(), 1, type, in.data(), 1, type));
      const long used = test::allocations - start;
      for (int k = 0; k < 64; ++k) {
        const bool sent = k % stride == 0 && k / stride < 3;
        EXPECT_EQ(in[static_cast<std::size_t>(k)], sent ? k : -1) << stride;
      }
      return used;
    };
    const long first = exchange(), again = exchange();
    EXPECT_LT(again, first);
    EXPECT_EQ(exchange(), again);
    MPI_Type_free(&type);
  }
  EXPECT_GT(same_handle, 0);  // or nothing was shown
}

/// The logarithmic algorithm goes along the ring of all ranks where it sends fewer messages.
TEST(IsoComm, TakesTheRingWhereItIsShorter) {
  if (test::ranks() < 3) return;  // there are too few ways to go
  const test::Setting at(MPI_COMM_WORLD, {test::ranks()}, {1}, {1, -1, 2, -2});
  const IsoComm iso(at.cart, at.relative);
  unsigned distances = 0;
  for (const int c : at.relative) distances |= static_cast<unsigned>((c + 2 * test::ranks()) % test::ranks());
  const int along_dimensions = 4;  // one and two steps, up and down
  EXPECT_LT(std::popcount(distances), along_dimensions);
  EXPECT_EQ(iso.schedule(Algorithm::logarithmic, Pattern::personal).rounds(), std::popcount(distances));
}

/// One rank alone may make one.
TEST(IsoComm, IsMadeWithoutCommunication) {
  const test::Setting at(MPI_COMM_WORLD, {test::ranks()}, {1}, {});
  const IsoComm first(at.cart, std::vector<int>{1});  // duplicates
  if (test::rank() == test::ranks() - 1) {
    const IsoComm alone(at.cart, std::vector<int>{1, -1});
    EXPECT_EQ(alone.neighbors().count(), 2);
  }
}

}  // namespace
}  // namespace isohalo
