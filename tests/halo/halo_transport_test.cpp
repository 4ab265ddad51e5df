/// What the transports must bear: several fields, exchanges that overlap, ranks that come late, and broken plans,
/// which these tests must notice.

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "datatypes/error.hpp"
#include "framework/shm/node.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::Memory;
using test::Pair;
using test::TestField;

const StencilShape<2> kMoore = StencilShape<2>::moore(1), kStar = StencilShape<2>::star(2);

CartesianDomain<2> torus(const Index<2>& extents, std::optional<PerDim<int, 2>> grid = {}) {
  DomainOptions<2> o;
  o.periodic = {true, true};
  o.process_grid = grid;
  return {MPI_COMM_WORLD, extents, o};
}

HaloOptions<2> by(Exchange e) {
  HaloOptions<2> options;
  options.exchange = e;
  return options;
}

TEST(HaloTransport, SeveralFieldsOfDifferentTypesAndTwoPlansInFlight) {
  const auto domain = torus({19, 23});
  for (const Exchange e : test::exchanges(kMoore))
    for (const Exchange f : test::exchanges(kStar)) {
      HaloPlan<2> one(domain, kMoore, 1, by(e)), two(domain, kStar, 2, by(f));
      const TestField<double, 2> a(domain, one, 1, Memory::shared);
      const TestField<float, 2> b(domain, one, 2, Memory::permuted);
      const TestField<Pair, 2> c(domain, one, 3, Memory::padded);
      const TestField<std::uint8_t, 2> d(domain, one, 5, Memory::padded);
      const TestField<double, 2> other(domain, two, 4, Memory::shared);
      one.start(a.ref(), b.ref(), c.ref(), d.ref());
      two.start(other.ref());
      EXPECT_THROW(one.start(a.ref()), UsageError);  // still in flight
      if (test::rank() % 2)
        one.finish(), two.finish();
      else
        two.finish(), one.finish();
      EXPECT_THROW(one.finish(), UsageError);
      const auto needed = test::needed_on(domain, kMoore, 1);
      const std::string what = exchange_name(e) + " and " + exchange_name(f);
      EXPECT_EQ(a.wrong(needed), 0) << what;
      EXPECT_EQ(b.wrong(needed), 0) << what;
      EXPECT_EQ(c.wrong(needed), 0) << what;
      EXPECT_EQ(d.wrong(needed), 0) << what;
      EXPECT_EQ(other.wrong(test::needed_on(domain, kStar, 2)), 0) << what;
    }
}

/// Each piece of a copy by a thread of its own.
void run_by_threads(int n, void (*piece)(void*, int), void* context) {
  std::vector<std::thread> threads;
  for (int k = 1; k < n; ++k) threads.emplace_back(piece, context, k);
  piece(context, 0);
  for (auto& t : threads) t.join();
}

TEST(HaloTransport, CopiesByThreads) {
  const auto domain = torus({34, 29});
  for (const Exchange e : test::exchanges(kMoore)) {
    HaloOptions<2> options = by(e);
    options.workers = {3, run_by_threads, 8};
    HaloPlan<2> plan(domain, kMoore, 3, options);
    const auto needed = test::needed_on(domain, kMoore, 3);
    for (int memory = 0; memory < test::kMemories; ++memory) {
      const TestField<double, 2> a(domain, plan, 1, static_cast<Memory>(memory));
      const TestField<std::uint8_t, 2> b(domain, plan, 2, static_cast<Memory>(memory));
      plan.exchange(a.ref(), b.ref());
      EXPECT_EQ(a.wrong(needed), 0) << exchange_name(e);
      EXPECT_EQ(b.wrong(needed), 0) << exchange_name(e);
    }
  }
}

/// Different shapes and depths in one exchange, one of them with nothing to bring.
TEST(HaloTransport, FieldsOfDifferentShapesAndDepths) {
  const auto domain = torus({19, 23});
  const std::vector<HaloNeed<2>> needs{{kMoore, 1}, {kStar, 2}, {kMoore, 0}, {StencilShape<2>::von_neumann(1), 7}};
  for (const Exchange e : test::exchanges(kMoore))
    for (int memory = 0; memory < test::kMemories; ++memory) {
      const auto layout = [&](int k) { return static_cast<Memory>((memory + k) % test::kMemories); };
      HaloPlan<2> plan(domain, needs, by(e));
      const TestField<double, 2> a(domain, plan, 1, layout(0), 0);
      const TestField<std::uint8_t, 2> b(domain, plan, 2, layout(1), 1);
      const TestField<Pair, 2> c(domain, plan, 3, layout(2), 2);
      const TestField<float, 2> d(domain, plan, 4, layout(3), 3);
      for (int round = 0; round < 3; ++round) plan.exchange(a.ref(), b.ref(), c.ref(), d.ref());
      const auto wrong = [&](const auto& field, std::size_t k) {
        return field.wrong(test::needed_on(domain, needs[k].shape, needs[k].depth));
      };
      EXPECT_EQ(wrong(a, 0), 0) << exchange_name(e);
      EXPECT_EQ(wrong(b, 1), 0) << exchange_name(e);
      EXPECT_EQ(wrong(c, 2), 0) << exchange_name(e);
      EXPECT_EQ(wrong(d, 3), 0) << exchange_name(e);
      EXPECT_THROW(plan.exchange(a.ref(), b.ref(), c.ref()), UsageError);
      EXPECT_THROW(plan.exchange(d.ref(), b.ref(), c.ref(), a.ref()), UsageError);  // `a` is too narrow
    }
  EXPECT_THROW(HaloPlan<2>(domain, std::vector<HaloNeed<2>>{}), UsageError);
  EXPECT_NO_THROW(HaloPlan<2>(domain, std::vector<HaloNeed<2>>(17, {kMoore, 1})));
  EXPECT_THROW(HaloPlan<2>(domain, needs).depth(4), UsageError);
}

TEST(HaloTransport, PlansThatDifferBetweenRanksAreRefusedOnAll) {
  const auto domain = torus({16, 24});
  const int last = test::rank() == test::ranks() - 1 && test::rank() > 0;
  for (const Exchange e : {Exchange::automatic, Exchange::shared, Exchange::coalesced, Exchange::direct_packed}) {
    const HaloPlan<2> wide(domain, kStar, 3);
    const TestField<double, 2> field(domain, wide, 0, Memory::plain);
    if (test::ranks() == 1) continue;
    EXPECT_THROW(HaloPlan<2>(domain, kStar, 2 + last, by(e)), UsageError);
    EXPECT_THROW(HaloPlan<2>(domain, last ? kMoore : kStar, 1, by(e)), UsageError);
    EXPECT_THROW(HaloPlan<2>(domain, kStar, 1, by(last ? Exchange::slabs : e)), UsageError);
    HaloPlan<2> same(domain, kStar, 1, by(e));  // as if nothing had been
    EXPECT_NO_THROW(same.exchange(field.ref()));
  }
}

TEST(HaloTransport, OnePlanServesManyLayoutsAndLists) {
  const auto domain = torus({16, 11});
  const auto needed = test::needed_on(domain, kMoore, 2);
  for (const Exchange e : test::exchanges(kMoore)) {
    HaloPlan<2> plan(domain, kMoore, 2, by(e));
    for (int round = 0; round < 2; ++round)
      for (const auto memory : {Memory::plain, Memory::shared, Memory::padded, Memory::permuted}) {
        const TestField<double, 2> a(domain, plan, round, memory);
        const TestField<Pair, 2> b(domain, plan, round, memory);
        plan.exchange(a.ref());
        EXPECT_EQ(a.wrong(needed), 0) << exchange_name(e);
        plan.exchange();  // nothing to bring
        plan.exchange(b.ref(), a.ref());
        EXPECT_EQ(a.wrong(needed), 0) << exchange_name(e);
        EXPECT_EQ(b.wrong(needed), 0) << exchange_name(e);
      }
  }
}

TEST(HaloTransport, TheAutomaticChoiceIsTheFastestAndTheSameOnAllRanks) {
  const auto domain = torus({40, 60});
  for (const auto& [name, shape] : test::shapes<2>()) {
    HaloPlan<2> plan(domain, shape, 2);
    EXPECT_EQ(plan.choice().used, Exchange::automatic);
    const TestField<double, 2> a(domain, plan, 0, Memory::plain);
    const TestField<float, 2> b(domain, plan, 0, Memory::padded);
    plan.exchange(a.ref());
    const ExchangeChoice choice = plan.choice();
    const bool one_way = test::ranks() == 1 && !slabs_possible(shape);
    ASSERT_EQ(choice.seconds.empty(), one_way);
    double best = 1e300;
    for (const auto& [exchange, seconds] : choice.seconds) {
      EXPECT_GT(seconds, 0);
      EXPECT_TRUE(fits(exchange, shape));
      best = std::min(best, seconds);
    }
    for (const auto& [exchange, seconds] : choice.seconds)
      if (exchange == choice.used) {
        EXPECT_EQ(seconds, best);
      }
    EXPECT_EQ(choice.text().find(exchange_name(choice.used) + " (measured: ") == std::string::npos, one_way)
        << choice.text();
    const auto same =
        static_cast<std::int64_t>(choice.used.pattern) * 8 + static_cast<std::int64_t>(choice.used.fill);
    EXPECT_EQ(domain.comm().min(same), domain.comm().max(same)) << name;
    const auto needed = test::needed_on(domain, shape, 2);
    EXPECT_EQ(a.wrong(needed), 0) << name;
    plan.exchange(a.ref(), b.ref());  // another list, another choice
    EXPECT_EQ(a.wrong(needed) + b.wrong(needed), 0) << name;
    plan.exchange(a.ref());
    EXPECT_EQ(plan.choice().text(), choice.text());
  }
}

TEST(HaloTransport, ListsThatDifferOrDoNotFitOnOneRankAreRefusedOnAll) {
  const auto domain = torus({16, 24});
  for (const Exchange e : {Exchange::automatic, Exchange::shared, Exchange::slabs, Exchange::coalesced_packed}) {
    HaloPlan<2> plan(domain, kMoore, 2, by(e));
    const TestField<double, 2> good(domain, plan, 0, Memory::plain);
    const TestField<float, 2> other(domain, plan, 0, Memory::plain);
    ArrayRef<double, 2> bad = good.ref();
    if (test::rank() == test::ranks() - 1) bad.ghost_high[1] = 1;
    EXPECT_THROW(plan.start(bad), UsageError);
    if (test::ranks() > 1) {
      const auto start = [&] { test::rank() == 0 ? plan.start(good.ref()) : plan.start(other.ref()); };
      EXPECT_THROW(start(), UsageError);
    }
    plan.exchange(good.ref());
    EXPECT_EQ(good.wrong(test::needed_on(domain, kMoore, 2)), 0);
  }
}

/// Whoever does not finish its exchange completes it when its plan goes; nobody waits for ever.
TEST(HaloTransport, PlansThatGoInTheMiddleCompleteTheirExchange) {
  const auto domain = torus({16, 24});
  const auto needed = test::needed_on(domain, kMoore, 2);
  for (const Exchange e : test::exchanges(kMoore))
    for (const auto memory : {Memory::plain, Memory::shared})
      for (const bool first : {true, false}) {
        auto plan = std::make_unique<HaloPlan<2>>(domain, kMoore, 2, by(e));
        const TestField<double, 2> warm(domain, *plan, 0, memory), field(domain, *plan, 1, memory);
        if (!first) plan->exchange(warm.ref());
        plan->start(field.ref());
        if (test::rank() % 2 == 0) plan->finish();
        plan.reset();
        EXPECT_EQ(field.wrong(needed), 0) << exchange_name(e);
      }
}

/// New values in every round, so that a ghost of the round before is wrong; two arrays in turn, as a solver has
/// them.
std::int64_t wrong_after_delays(const CartesianDomain<2>& domain, Exchange exchange, Memory memory, bool split,
                                std::optional<Stores> stores = {}) {
  const auto needed = test::needed_on(domain, kMoore, 1);
  HaloPlan<2> plan(domain, kMoore, 1, by(exchange));
  if (stores) detail::HaloPlanAccess::copy_by(plan, *stores);
  const std::array<TestField<double, 2>, 2> fields{{{domain, plan, 0, memory}, {domain, plan, 1, memory}}};
  test::Random random(static_cast<std::uint64_t>(test::rank()) + 1);
  const auto delay = [&] {
    if (random.in(0, 9) == 0) usleep(static_cast<useconds_t>(random.in(0, 300)));
  };
  std::int64_t wrong = 0;
  for (int round = 0; round < 1000; ++round) {
    const auto& field = fields[static_cast<std::size_t>(round % 2)];
    for_each_cell(domain.owned(), [&](const Index<2>& i) { field.ref().at(i) = field.right(i) + 1e6 * round; });
    delay();
    if (split) {
      plan.start(field.ref());
      delay();
      plan.finish();
    } else {
      plan.exchange(field.ref());
    }
    for (const auto& i : needed) wrong += !test::same(field.ref().at(i), field.right(i) + 1e6 * round);
  }
  return wrong;
}

TEST(HaloTransport, ManyRepetitionsWithRandomDelays) {
  const auto domain = torus({24, 18});
  for (const Exchange e : test::exchanges(kMoore))
    EXPECT_EQ(wrong_after_delays(domain, e, Memory::plain, true), 0) << exchange_name(e);
  for (const bool split : {true, false})
    EXPECT_EQ(wrong_after_delays(domain, Exchange::shared, Memory::shared, split), 0) << split;
}

/// Rows long enough to go past the caches, and shorter ones, in every layout; with neighbors that look at once.
TEST(HaloTransport, RowsThatAreStreamed) {
  for (const PerDim<int, 2> grid : {PerDim<int, 2>{test::ranks(), 1}, PerDim<int, 2>{1, test::ranks()}}) {
    const auto domain = torus({4 * test::ranks(), 307 * test::ranks()}, grid);
    const auto needed = test::needed_on(domain, kMoore, 3);
    for (const Exchange e : test::exchanges(kMoore))
      for (int memory = 0; memory < test::kMemories; ++memory) {
        HaloPlan<2> plan(domain, kMoore, 3, by(e));
        detail::HaloPlanAccess::copy_by(plan, Stores::streaming);
        const TestField<double, 2> a(domain, plan, 1, static_cast<Memory>(memory));
        const TestField<std::uint8_t, 2> b(domain, plan, 2, static_cast<Memory>(memory));
        plan.exchange(a.ref(), b.ref());
        EXPECT_EQ(a.wrong(needed), 0) << exchange_name(e) << ", layout " << memory;
        EXPECT_EQ(b.wrong(needed), 0) << exchange_name(e) << ", layout " << memory;
      }
  }
  const auto domain = torus({3 * test::ranks(), 200}, PerDim<int, 2>{test::ranks(), 1});
  for (const Memory memory : {Memory::plain, Memory::shared})
    EXPECT_EQ(wrong_after_delays(domain, Exchange::shared, memory, false, Stores::streaming), 0);
}

/// Ranks whose array is in shared memory get whole rows without a copy in between; the others do not, and both
/// kinds may meet. Seen between start and finish of one rank after another: the others, whose exchange is not
/// split, have waited for it.
TEST(HaloTransport, RowsOfArraysInSharedMemoryAreWrittenInPlace) {
  DomainOptions<2> o;
  o.periodic = {true, true};
  o.process_grid = {{test::ranks(), 1}};
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {5 * test::ranks(), 40}, o);
  const auto needed = test::needed_on(domain, kMoore, 2);
  const auto node = Node::of(domain.comm());
  const int p = test::ranks(), me = test::rank();
  for (const Memory memory : {Memory::plain, Memory::shared, Memory::permuted})
    for (const bool mixed : {false, true}) {
      HaloPlan<2> plan(domain, kMoore, 2, by(Exchange::shared));
      const auto of = [&](int rank) { return mixed && rank % 2 ? Memory::plain : memory; };
      TestField<double, 2> field(domain, plan, 0, of(me));
      plan.exchange(field.ref());
      EXPECT_EQ(field.wrong(needed), 0);
      std::int64_t missing = 0;  // of two rows of 44 cells, 4 of them too short a row of another box
      for (const int peer : {(me + 1) % p, (me + p - 1) % p})
        if (peer != me) missing += 2 * (node->holds(peer) && of(me) == Memory::shared ? 4 : 44);
      for (int split = 0; split < p; ++split) {
        field.refill(1 + split);
        if (me == split)
          plan.start(field.ref());
        else
          plan.exchange(field.ref());
        MPI_Barrier(MPI_COMM_WORLD);
        if (me == split) {
          EXPECT_EQ(field.wrong(needed), missing) << "memory " << static_cast<int>(memory) << mixed;
          plan.finish();
        }
        EXPECT_EQ(field.wrong(needed), 0);
      }
    }
}

/// Each exchange with an array that did not exist before and is gone afterwards, often where another was.
TEST(HaloTransport, ArraysInSharedMemoryMayComeAndGo) {
  const auto domain = torus({12, 20});
  const auto needed = test::needed_on(domain, kStar, 1);
  HaloPlan<2> plan(domain, kStar, 1, by(Exchange::shared));
  for (int round = 0; round < 200; ++round) {
    const auto field = std::make_unique<TestField<double, 2>>(domain, plan, round, Memory::shared);
    plan.exchange(field->ref());
    ASSERT_EQ(field->wrong(needed), 0) << round;
  }
}

/// A suite that could not fail would prove nothing: three broken plans must be caught, whatever the transport.
class Mutated : public testing::TestWithParam<Exchange> {
 protected:
  bool caught(const HaloMutation<2>& mutation) {
    const bool plain = caught_in(Memory::plain, mutation), shared = caught_in(Memory::shared, mutation);
    EXPECT_EQ(plain, shared);
    return plain;
  }

 private:
  static bool caught_in(Memory memory, const HaloMutation<2>& mutation) {
    DomainOptions<2> o;
    o.periodic = {true, true};
    o.process_grid = {{test::ranks(), 1}};
    const CartesianDomain<2> domain(MPI_COMM_WORLD, {12 * test::ranks(), 16}, o);
    const auto wrong = test::exchange_once<double, 2>(domain, kMoore, 2, memory, GetParam(),
                                                      test::needed_on(domain, kMoore, 2), mutation);
    return test::all_ranks_ok(wrong > 0);
  }
};

TEST_P(Mutated, NothingIsNotCaught) {
  EXPECT_FALSE(caught({}));
}
TEST_P(Mutated, SwappedDirection) {
  EXPECT_TRUE(caught([](auto& pieces) {  // each piece takes what the opposite one should get
    Box<2> all = pieces.front().region.box;
    for (const auto& p : pieces)
      for (int j = 0; j < 2; ++j) {
        all.low[j] = std::min(all.low[j], p.region.box.low[j]);
        all.high[j] = std::max(all.high[j], p.region.box.high[j]);
      }
    const auto right = pieces;
    for (auto& p : pieces)
      for (const auto& from : right) {
        Box<2> mirrored;
        for (int j = 0; j < 2; ++j) {
          mirrored.low[j] = all.low[j] + all.high[j] - from.region.box.high[j];
          mirrored.high[j] = all.low[j] + all.high[j] - from.region.box.low[j];
        }
        if (mirrored != p.region.box) continue;
        p.owner = from.owner;
        for (int j = 0; j < 2; ++j) p.shift[j] = p.region.box.low[j] - (from.region.box.low[j] - from.shift[j]);
      }
  }));
}
TEST_P(Mutated, DepthOffByOne) {
  EXPECT_TRUE(caught([](auto& pieces) {
    for (auto& p : pieces)
      if (p.region.box.extent(1) == 2) ++p.region.box.low[1];
  }));
}
TEST_P(Mutated, ACornerLeftOut) {
  EXPECT_TRUE(caught([](auto& pieces) { pieces.pop_back(); }));
}
INSTANTIATE_TEST_SUITE_P(HaloTransport, Mutated, testing::ValuesIn(test::exchanges(kMoore)),
                         [](const auto& which) { return exchange_name(which.param); });

}  // namespace
}  // namespace isohalo
