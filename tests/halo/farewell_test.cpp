/// Plans that go on one rank while others wait for it: these end with its error, and nobody waits for ever.

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "datatypes/error.hpp"
#include "framework/halo/view_exchange.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::Memory;
using test::TestField;

const StencilShape<2> kMoore = StencilShape<2>::moore(1);

/// A row of ranks, so that those far away learn it from those between.
CartesianDomain<2> row(bool periodic, std::int64_t cells = 7, MPI_Comm comm = MPI_COMM_WORLD) {
  DomainOptions<2> o;
  o.process_grid = {{1, test::ranks()}};
  o.periodic = {false, periodic};
  return {comm, {cells, 5 * test::ranks()}, o};
}

bool last() {
  return test::rank() == test::ranks() - 1;
}

HaloOptions<2> by(Exchange e) {
  HaloOptions<2> options;
  options.exchange = e;
  return options;
}

std::string whose() {
  return "the plan is gone on rank " + std::to_string(test::ranks() - 1) + ": ";
}

/// Exchanges until it fails; the text of the error.
template <class ExchangeOnce>
std::string until_error(ExchangeOnce&& exchange) {
  for (int k = 0; k < 20; ++k) {
    try {
      exchange();
    } catch (const UsageError& e) {
      return e.what();
    }
  }
  return "no error";
}

void expect_fresh_plan_works(const CartesianDomain<2>& domain, Exchange e) {
  HaloPlan<2> plan(domain, kMoore, 1, by(e));
  const TestField<double, 2> field(domain, plan, 0, Memory::plain);
  plan.exchange(field.ref());
  EXPECT_EQ(field.wrong(test::needed_on(domain, kMoore, 1)), 0) << exchange_name(e);
}

TEST(Farewell, AnArrayThatDoesNotFitIsPutRight) {
  const auto domain = row(true);
  for (const Exchange e : test::exchanges(kMoore)) {
    HaloPlan<2> plan(domain, kMoore, 1, by(e));
    const TestField<double, 2> field(domain, plan, 0, Memory::shared);
    for (int k = 0; k < 3; ++k) {
      ArrayRef<double, 2> bad = field.ref();
      bad.ghost_low[1] = 0;
      if (k > 0 && last()) {
        EXPECT_THROW(plan.exchange(bad), UsageError);
        usleep(30000);  // long enough for the others to look
      }
      plan.exchange(field.ref());
      EXPECT_EQ(field.wrong(test::needed_on(domain, kMoore, 1)), 0) << exchange_name(e);
    }
  }
}

TEST(Farewell, OrItsPlanGoes) {
  if (test::ranks() == 1) return;
  for (const bool periodic : {false, true})
    for (const Exchange e : test::exchanges(kMoore)) {
      const auto domain = row(periodic);
      std::optional<HaloPlan<2>> plan(std::in_place, domain, kMoore, 1, by(e));
      const TestField<double, 2> field(domain, *plan, 0, Memory::shared);
      ArrayRef<double, 2> array = field.ref();
      for (int k = 0; k < 3; ++k) plan->exchange(array);
      if (last()) array.ghost_low[1] = 0;
      const std::string error = until_error([&] { plan->exchange(array); });
      if (last()) {
        EXPECT_NE(error.find("0 ghost layers"), std::string::npos) << error;
      } else {
        EXPECT_NE(error.find(whose() + "halo exchange: the array has 0 ghost layers"), std::string::npos)
            << error << " by " << exchange_name(e);
        EXPECT_THROW(plan->start(array), UsageError);
        EXPECT_THROW(plan->progress(), UsageError);
        EXPECT_THROW(plan->finish(), UsageError);
      }
      plan.reset();
      expect_fresh_plan_works(domain, e);
    }
}

TEST(Farewell, BeforeAnExchangeOfAnotherKind) {
  if (test::ranks() == 1) return;
  const auto domain = row(true);
  for (const Exchange e : test::exchanges(kMoore)) {
    std::optional<HaloPlan<2>> plan(std::in_place, domain, kMoore, 1, by(e));
    const TestField<double, 2> field(domain, *plan, 0, Memory::shared), more(domain, *plan, 1, Memory::shared);
    ArrayRef<double, 2> array = field.ref();
    for (int k = 0; k < 3; ++k) plan->exchange(array);
    if (last()) {
      array.ghost_low[1] = 0;
      EXPECT_THROW(plan->exchange(array), UsageError);
    } else {
      const std::string error = until_error([&] { plan->exchange(array, more.ref()); });
      EXPECT_NE(error.find(whose() + "halo exchange: the array has 0 ghost layers"), std::string::npos)
          << error << " by " << exchange_name(e);
    }
    plan.reset();
    expect_fresh_plan_works(domain, e);
  }
}

/// One rank alone exchanges what is new to the plan.
TEST(Farewell, ListsThatDifferLater) {
  if (test::ranks() == 1) return;
  for (const bool periodic : {false, true})
    for (const Exchange e : test::exchanges(kMoore)) {
      const auto domain = row(periodic);
      std::optional<HaloPlan<2>> plan(std::in_place, domain, kMoore, 1, by(e));
      const TestField<double, 2> field(domain, *plan, 0, Memory::shared), more(domain, *plan, 1, Memory::shared);
      for (int k = 0; k < 3; ++k) {  // these do not differ, though one rank is late
        if (last()) usleep(150000);
        if (k < 2) plan->exchange(field.ref());
        if (k == 2) plan->exchange(field.ref(), more.ref(), field.ref());
      }
      const std::string error = until_error([&] {
        if (last())
          plan->exchange(field.ref(), more.ref());
        else
          plan->exchange(field.ref());
      });
      EXPECT_NE(error.find("the list of element sizes differs between ranks"), std::string::npos)
          << error << " by " << exchange_name(e);
      EXPECT_THROW(plan->start(field.ref()), UsageError);
      plan.reset();
      expect_fresh_plan_works(domain, e);
    }
}

TEST(Farewell, InTheMiddleOfAnExchange) {
  if (test::ranks() == 1) return;
  const auto domain = row(true);
  for (const Exchange e : test::exchanges(kMoore)) {
    std::optional<HaloPlan<2>> plan(std::in_place, domain, kMoore, 1, by(e));
    const TestField<double, 2> field(domain, *plan, 0, Memory::shared);
    plan->exchange(field.ref());
    if (last()) {
      plan->start(field.ref());
    } else {
      const std::string error = until_error([&] { plan->exchange(field.ref()); });
      EXPECT_NE(error.find(whose()), std::string::npos) << error << " by " << exchange_name(e);
    }
    plan.reset();
    domain.comm().barrier();  // the field must live until all have come
    expect_fresh_plan_works(domain, e);
  }
}

/// Messages so large that they are sent when they are received, of a rank that comes late to one that has ended
/// with the error and has given its array away.
TEST(Farewell, LargeMessagesOfRanksThatComeLate) {
  if (test::ranks() == 1) return;
  const auto domain = row(true, 20000);
  for (const Exchange e : test::exchanges(kMoore)) {
    {
      HaloPlan<2> plan(domain, kMoore, 1, by(e));
      const TestField<double, 2> field(domain, plan, 0, Memory::plain);
      plan.exchange(field.ref());
      ArrayRef<double, 2> array = field.ref();
      if (last()) array.ghost_low[1] = 0;
      if (test::rank() == 0) usleep(200000);
      const std::string error = until_error([&] { plan.exchange(array); });
      EXPECT_NE(error.find("0 ghost layers"), std::string::npos) << error << " by " << exchange_name(e);
    }
    expect_fresh_plan_works(row(true), e);
  }
}

/// Messages that nobody took are not met by plans on a later communicator.
TEST(Farewell, NothingIsLeftForLaterCommunicators) {
  for (const Exchange e : test::exchanges(kMoore))
    for (int turn = 0; turn < 3; ++turn) {
      MPI_Comm comm = MPI_COMM_NULL;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      {
        const auto domain = row(true, 7, comm);
        HaloPlan<2> plan(domain, kMoore, 1, by(e));
        const TestField<double, 2> field(domain, plan, turn, Memory::plain);
        plan.exchange(field.ref());
        EXPECT_EQ(field.wrong(test::needed_on(domain, kMoore, 1)), 0) << exchange_name(e) << ", turn " << turn;
        plan.start(field.ref());
      }
      MPI_Comm_free(&comm);
    }
}

/// What a plan in trouble had of shared memory is not given to another while a rank may still look there.
TEST(Farewell, OtherPlansAreUnharmed) {
  if (test::ranks() == 1) return;
  const auto domain = row(true);
  const auto needed = test::needed_on(domain, kMoore, 1);
  for (const Exchange e : test::exchanges(kMoore)) {
    std::optional<HaloPlan<2>> one(std::in_place, domain, kMoore, 1, by(e));
    const TestField<double, 2> a(domain, *one, 1, Memory::shared);
    for (int k = 0; k < 3; ++k) one->exchange(a.ref());
    ArrayRef<double, 2> array = a.ref();
    if (last()) {
      array.ghost_low[1] = 0;
      EXPECT_THROW(one->start(array), UsageError);
      one.reset();
    } else {
      one->start(array);
    }
    HaloPlan<2> two(domain, kMoore, 1, by(e));
    const TestField<double, 2> b(domain, two, 2, Memory::shared);
    for (int k = 0; k < 6; ++k) two.exchange(b.ref());
    if (!last()) {
      const bool far = test::rank() > 0 && test::rank() < test::ranks() - 2;  // completes the exchange
      const std::string error = until_error([&] { one->finish(); });
      EXPECT_TRUE(far || error.find("0 ghost layers") != std::string::npos) << error << " by " << exchange_name(e);
    }
    two.exchange(b.ref());
    EXPECT_EQ(b.wrong(needed), 0) << exchange_name(e);
  }
}

TEST(Farewell, NullArraysAreNoArrays) {
  const auto domain = row(true);
  for (const Exchange e : {Exchange::automatic, Exchange::shared, Exchange::coalesced_packed}) {
    HaloPlan<2> plan(domain, kMoore, 1, by(e));
    const TestField<double, 2> field(domain, plan, 0, Memory::plain);
    ArrayRef<double, 2> array = field.ref();
    if (last()) array.data = nullptr;
    EXPECT_THROW(plan.exchange(array), UsageError);  // on all ranks
    plan.exchange(field.ref());
    EXPECT_EQ(field.wrong(test::needed_on(domain, kMoore, 1)), 0) << exchange_name(e);
  }
}

TEST(Farewell, OfViews) {
  if (test::ranks() == 1) return;
  using View = Kokkos::View<double**, Kokkos::HostSpace>;
  const auto domain = row(false);
  for (const HaloPattern pattern : {HaloPattern::direct, HaloPattern::coalesced, HaloPattern::slabs}) {
    std::optional<KokkosViewExchange<View>> plan;
    plan.emplace(domain, kMoore, 1, Index<2>{1, 1}, Index<2>{1, 1}, ViewExchangeOptions<2>{pattern, false, {}});
    const View view("view", 9, 7), narrow("narrow", 9, 6);
    plan->exchange(view);
    const std::string error = until_error([&] { plan->exchange(last() ? narrow : view); });
    if (last()) {
      EXPECT_NE(error.find("6 cells in dimension 1"), std::string::npos) << error;
    } else {
      EXPECT_NE(error.find(whose() + "view exchange: the view has 6 cells"), std::string::npos) << error;
      EXPECT_THROW(plan->start(view), UsageError);
    }
  }
  expect_fresh_plan_works(domain, Exchange::automatic);
}

}  // namespace
}  // namespace isohalo
