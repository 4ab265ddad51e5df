/// Reductions and halo exchanges of several stages in flight together, waited for in different orders on different
/// ranks: each wait must do this rank's part of the others too, or the ranks wait for each other for ever.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "apps/bench/emulated_network.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "framework/reduce/allreduce.hpp"
#include "framework/reduce/array_reducer.hpp"
#include "framework/reduce/tree_reducer.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// All to the last rank and back: every rank waits for a rank that must act after it was started.
std::string there_and_back(int p) {
  return p == 1 ? "auto"
                : "c" + std::to_string(p) + "m" + std::to_string(p) + ",e" + std::to_string(p) + "m" +
                      std::to_string(p);
}

struct Operation {
  const char* name;
  std::function<void()> start, wait;
  std::function<bool()> right;
};

class InFlight : public testing::Test {
 protected:
  InFlight() {
    const int p = test::ranks(), r = test::rank();
    plan_halo();
    add_plain("plain, recursive doubling", recursive_doubling(p).text());
    add_plain("plain, there and back", there_and_back(p));
    add_array("tree by messages", {ReductionMethod::tree, recursive_doubling(p).text()});
    add_array("tree to one rank", {ReductionMethod::tree, there_and_back(p), false, false, p / 2});
    add_array("tree on the node", {});
    add_array("binary tree", {ReductionMethod::binary_tree});
    add_array("exact", {ReductionMethod::exact_over_tiles});
    add_array("exact to one rank", {.method = ReductionMethod::exact_over_tiles, .root = p - 1});
    add_array("exact by a schedule, to one rank",
              {.method = ReductionMethod::exact_over_tiles, .schedule = there_and_back(p), .root = 0});
    add_array("exact by a schedule", {ReductionMethod::exact_over_tiles, there_and_back(p)});
    MPI_Comm_dup(MPI_COMM_WORLD, &slow_);  // the messages of this one take their time
    network_.emplace(Communicator::of(slow_), EmulatedLatency{1e-4, 1e-5});
    add_array("emulated latency", {ReductionMethod::tree, recursive_doubling(p).text(), false, false}, slow_);
    add_grid({});
    for (const double scale : {1.0, 3.0, 7.0}) add_grid({ReductionMethod::exact_over_tiles}, scale);
    add_grid({ReductionMethod::tree, recursive_doubling(p).text()});
    random_ = std::make_unique<test::Random>(static_cast<std::uint64_t>(17 + r));
  }
  ~InFlight() override {
    operations_.clear();
    network_.reset();
    MPI_Comm_free(&slow_);
  }

  /// Starts all in one order, a little later on some ranks than on others, and waits in an order of this rank's.
  void run() {
    ++round_;
    for (const Operation& o : operations_) {
      if (random_->in(0, 4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_->in(0, 300)));
      o.start();
    }
    std::vector<const Operation*> order;
    for (const Operation& o : operations_) order.push_back(&o);
    for (std::size_t n = order.size(); n > 1; --n)
      std::swap(order[n - 1], order[static_cast<std::size_t>(random_->in(0, static_cast<std::int64_t>(n) - 1))]);
    for (const Operation* o : order) o->wait();
    for (const Operation& o : operations_) EXPECT_TRUE(o.right()) << o.name << " round " << round_;
  }

 private:
  void add_plain(const char* name, const std::string& schedule) {
    auto sum = std::make_shared<ScheduledAllreduce>(MPI_COMM_WORLD, 1, MPI_INT64_T, MPI_SUM, schedule);
    auto value = std::make_shared<std::int64_t>();
    operations_.push_back({name,
                           [this, sum, value] {
                             *value = test::rank() + round_;
                             sum->start(value.get());
                           },
                           [sum] { sum->wait(); },
                           [this, value] {
                             const int p = test::ranks();
                             return *value == p * (p - 1) / 2 + p * round_;
                           }});
  }

  void add_array(const char* name, const ReductionOptions& options, MPI_Comm comm = MPI_COMM_WORLD) {
    const std::int64_t mine = 3 + test::rank() % 2;
    auto sum = std::make_shared<ArrayReducer<double>>(comm, mine, Sum(), options, 1);
    auto numbers = std::make_shared<std::vector<double>>(static_cast<std::size_t>(mine));
    auto result = std::make_shared<double>();
    const double n = static_cast<double>(sum->starts().back());
    const bool here = options.root < 0 || options.root == test::rank();
    operations_.push_back({name,
                           [this, sum, numbers] {
                             std::fill(numbers->begin(), numbers->end(), 1.0 + round_);
                             sum->start(numbers->data());
                           },
                           [sum, result] { *result = sum->wait(); },
                           [this, result, n, here] { return !here || *result == n * (1 + round_); }});
  }

  /// The pass over a grid, of which rank borders cut tiles, then its combination in parts.
  void add_grid(const ReductionOptions& options, double scale = 1) {
    const CartesianDomain<2> domain(MPI_COMM_WORLD, {24, 30});
    auto tree = std::make_shared<TreeReducer<double, 2, Sum>>(domain),
         whole = std::make_shared<TreeReducer<double, 2, Sum>>(domain);
    tree->reduce_by(options);
    if (options.method == ReductionMethod::exact_over_tiles) whole->reduce_by(options);
    auto result = std::make_shared<double>();
    const auto value = [this, scale](const Index<2>& i) {
      return scale * (0.1 * static_cast<double>(i[0] * 30 + i[1]) + round_);
    };
    operations_.push_back({"grid",
                           [tree, value] {
                             tree->run_all([&](const Index<2>& i, std::int64_t) {
                               return [value, i](std::int64_t x) { return value({i[0], i[1] + x}); };
                             });
                             tree->start();
                           },
                           [tree, result] {
                             tree->test();
                             *result = tree->wait();
                           },
                           [whole, result, value] { return *result == whole->reduce(value); }});
  }

  /// Ghosts of a torus, dimension after dimension: the corners come in the second stage.
  void plan_halo() {
    const auto domain = std::make_shared<CartesianDomain<2>>(MPI_COMM_WORLD, Index<2>{24, 30},
                                                             DomainOptions<2>{.periodic = {true, true}});
    for (const Exchange e : {Exchange::slabs, Exchange::slabs_packed, Exchange::shared}) {
      HaloOptions<2> options;
      options.exchange = e;
      auto halo = std::make_shared<HaloPlan<2>>(*domain, StencilShape<2>::moore(2), 1, options);
      auto own = std::make_shared<std::vector<double>>(adopted_size(domain->owned(), 2));
      auto array = std::make_shared<ArrayRef<double, 2>>(adopt(own->data(), domain->owned(), 2));
      const auto value = [this, domain](const Index<2>& i) {
        return 1e4 * round_ + static_cast<double>(((i[0] + 24) % 24) * 30 + (i[1] + 30) % 30);
      };
      operations_.push_back({"halo",
                             [domain, halo, own, array, value] {
                               std::fill(own->begin(), own->end(), -1.0);
                               for_each_cell(domain->owned(), [&](const Index<2>& i) { array->at(i) = value(i); });
                               halo->start(*array);
                             },
                             [halo] { halo->finish(); },
                             [domain, own, array, value] {
                               bool good = true;
                               for_each_cell(domain->owned().grown({2, 2}, {2, 2}),
                                             [&](const Index<2>& i) { good = good && array->at(i) == value(i); });
                               return good;
                             }});
    }
  }

  MPI_Comm slow_ = MPI_COMM_NULL;
  std::optional<EmulatedNetwork> network_;
  std::vector<Operation> operations_;
  std::unique_ptr<test::Random> random_;
  int round_ = 0;
};

TEST_F(InFlight, WaitedForInDifferentOrdersOnDifferentRanks) {
  for (int round = 0; round < 60; ++round) run();
}

/// One at a time, and an end for each begin.
TEST(StartedReduction, IsOneAtATime) {
  double number = 1 + test::rank();
  const double all = test::ranks() * (test::ranks() + 1) / 2.0;
  ArrayReducer<double> sum(MPI_COMM_WORLD, 1);
  EXPECT_THROW(sum.wait(), UsageError);
  for (int round = 0; round < 3; ++round) {
    sum.start(&number);
    EXPECT_THROW(sum.start(&number), UsageError);
    EXPECT_THROW(sum.reduce([](std::int64_t) { return 7.0; }), UsageError);
    EXPECT_THROW(sum.reduce_by({ReductionMethod::exact_over_terms}), UsageError);
    while (round == 1 && !sum.test()) {
    }
    EXPECT_EQ(sum.wait(), all);
  }
  const CartesianDomain<1> domain(MPI_COMM_WORLD, {4 * test::ranks()});
  TreeReducer<double, 1, Sum> tree(domain);
  EXPECT_THROW(tree.wait(), UsageError);
  tree.run_all([](const Index<1>&, std::int64_t) { return [](std::int64_t) { return 1.0; }; });
  tree.start();
  EXPECT_THROW(tree.reduce([](const Index<1>&) { return 2.0; }), UsageError);
  EXPECT_EQ(tree.wait(), 4 * test::ranks());
  ScheduledAllreduce plain(MPI_COMM_WORLD, 1, MPI_DOUBLE, MPI_SUM);
  double other = 0;
  plain.start(&number);
  EXPECT_THROW(plain.start(&other), UsageError);
  plain.wait();
  EXPECT_EQ(number, all);
  plain.start(&other);
  while (!plain.test()) {
  }
  plain.reduce(&other);
}

/// A rank that waits for something else altogether does its part as well.
TEST(StartedReduction, GoesOnInOtherWaits) {
  const int p = test::ranks();
  ScheduledAllreduce sum(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM, there_and_back(p));
  ArrayReducer<double> tree(MPI_COMM_WORLD, 1, Sum(), {ReductionMethod::binary_tree}, 1);
  const Communicator world = Communicator::of(MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    int one = 1;
    const double number = test::rank();
    sum.start(&one);
    tree.start(&number);
    if (test::rank() == round % p) {  // the others enter the barrier only when they have their results
      world.barrier();
      sum.wait();
      EXPECT_EQ(tree.wait(), p * (p - 1) / 2);
    } else {
      EXPECT_EQ(tree.wait(), p * (p - 1) / 2);
      sum.wait();
      world.barrier();
    }
    EXPECT_EQ(one, p);
  }
}

}  // namespace
}  // namespace isohalo
