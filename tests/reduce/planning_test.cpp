/// Measured costs and the choice of schedules over MPI.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "apps/bench/emulated_network.hpp"
#include "framework/reduce/allreduce.hpp"
#include "framework/reduce/array_reducer.hpp"
#include "framework/reduce/multicast.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

Communicator world() {
  return Communicator::of(MPI_COMM_WORLD);
}

std::vector<int> all_ranks() {
  std::vector<int> ranks;
  for (int r = 0; r < test::ranks(); ++r) ranks.push_back(r);
  return ranks;
}

/// Sleepers on a busy machine wake up late: a measurement may be repeated a few times. `good` is the same on all
/// ranks.
void undisturbed(const std::function<bool()>& good) {
  for (int attempt = 0; attempt < 8; ++attempt)
    if (good()) return;
}

TEST(FitCosts, ReturnsTheModelsParameters) {
  const MessageCosts costs{.latency_ns = 1340, .pipeline_ns = 340, .per_byte_ns = 0.25};
  std::vector<MulticastPoint> points;
  for (const double bytes : {8.0, 512.0, 65536.0})
    for (int k = 1; k <= 8; ++k) points.push_back({1.0 * k, bytes, 2 * 1340 + (k + 1) * 340.0 + k * bytes * 0.25});
  const MessageCosts fitted = fit_costs(points);
  EXPECT_NEAR(fitted.latency_ns, costs.latency_ns, 1e-6);
  EXPECT_NEAR(fitted.pipeline_ns, costs.pipeline_ns, 1e-6);
  EXPECT_NEAR(fitted.per_byte_ns, costs.per_byte_ns, 1e-9);
  points.back().ns *= 50;  // one large message that was held up
  EXPECT_NEAR(fit_costs(points).per_byte_ns, costs.per_byte_ns, 1e-9);
  EXPECT_THROW(fit_costs(std::span(points).first(1)), UsageError);
}

TEST(MeasuredCosts, AreThoseOfTheEmulatedNetwork) {
  if (test::ranks() < 2) {
    EXPECT_EQ(measured_costs(world(), all_ranks()), MessageCosts{});
    EXPECT_THROW(
        {
          std::vector<MulticastTimes> none;
          time_multicasts(world(), all_ranks(), {}, none);
        },
        UsageError);
    return;
  }
  for (const auto& [latency, send, blocking] : {std::tuple{20e-3, 5e-3, false}, {4e-3, 10e-3, true}}) {
    const auto near = [](double ns, double s) { return std::abs(ns - s * 1e9) <= 0.1 * s * 1e9; };
    MessageCosts costs;
    undisturbed([&, latency = latency, send = send, blocking = blocking] {
      std::vector<MulticastTimes> cases;
      for (const int k : {1, 4, 7}) cases.push_back({{k, 8, blocking}});
      const EmulatedNetwork network(world(), {latency, send});
      time_multicasts(world(), all_ranks(), {.samples = 3, .seconds = 20}, cases);
      std::vector<MulticastPoint> points;
      for (const auto& c : cases) {
        EXPECT_EQ(c.ns.size(), 3u);
        points.push_back({1.0 * c.multicast.messages, 8, *std::min_element(c.ns.begin(), c.ns.end())});
      }
      costs = fit_costs(points);
      return near(costs.latency_ns, latency) && near(costs.pipeline_ns, send);
    });
    EXPECT_TRUE(near(costs.latency_ns, latency)) << costs.latency_ns << " for " << latency;
    EXPECT_TRUE(near(costs.pipeline_ns, send)) << costs.pipeline_ns << " for " << send;
  }
}

TEST(MeasuredCosts, AreTheSameOnAllRanks) {
  MessageCosts costs = measured_costs(world(), all_ranks());
  double extremes[4] = {costs.latency_ns, -costs.latency_ns, costs.pipeline_ns, -costs.pipeline_ns};
  world().allreduce(extremes, 4, MPI_DOUBLE, MPI_MAX);
  EXPECT_EQ(extremes[0], -extremes[1]);
  EXPECT_EQ(extremes[2], -extremes[3]);
}

/// Chooses, checks the sum, and that all ranks chose the same by the same times.
ScheduleChoice chosen(const Planning& planning, const EmulatedLatency& emulate = {}) {
  const EmulatedNetwork network(world(), emulate);
  ScheduledAllreduce sum(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM, "auto", planning);
  int one = 1;
  sum.reduce(&one);
  EXPECT_EQ(one, test::ranks());
  std::string first = sum.choice().text();
  world().broadcast(first, 0);
  EXPECT_EQ(first, sum.choice().text());
  return sum.choice();
}

TEST(Planning, ByModelWithGivenCosts) {
  const ScheduleChoice few = chosen({.costs = {.latency_ns = 1e6, .pipeline_ns = 1}}),
                       many = chosen({.costs = {.latency_ns = 1, .pipeline_ns = 1e6}});
  EXPECT_EQ(few.by, "model");
  EXPECT_TRUE(few.times.empty());
  if (test::ranks() > 1) {
    EXPECT_EQ(few.schedule, "a" + std::to_string(test::ranks()));
  }
  if (test::ranks() == 4) {
    EXPECT_EQ(many.schedule, "a2,a2");
  }
}

TEST(Planning, ByMeasuredCostsAndByTiming) {
  const std::string one_stage = "a" + std::to_string(test::ranks());
  for (const PlanBy by : {PlanBy::measured, PlanBy::timing}) {
    ScheduleChoice few, many;
    undisturbed([&] {  // latency counts: one stage; sends count: more stages
      few = chosen({.by = by}, {20e-3, 0.2e-3}), many = chosen({.by = by}, {0.5e-3, 8e-3});
      return test::ranks() < 4 || (few.schedule == one_stage && many.schedule != one_stage &&
                                   many.costs.pipeline_ns > many.costs.latency_ns);
    });
    EXPECT_EQ(few.by, by == PlanBy::timing ? "timing" : "measured costs");
    if (test::ranks() < 4) continue;
    EXPECT_EQ(few.schedule, one_stage) << few.text();
    EXPECT_NE(many.schedule, one_stage) << many.text();
    EXPECT_GT(many.costs.pipeline_ns, many.costs.latency_ns);
    if (by != PlanBy::timing) continue;
    ASSERT_GT(few.times.size(), 1u);
    const auto best = std::min_element(few.times.begin(), few.times.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_EQ(best->first, few.schedule);
    EXPECT_GT(best->second, 20e6);
  }
}

TEST(Planning, OfReductionsChangesNoBit) {
  const std::vector<double> numbers{0.1 * test::rank(), 1e16, 1.0 / (3 + test::rank())};
  ArrayReducer<double> tree(MPI_COMM_WORLD, 3, Sum(), {}, 1);
  const double expected = tree.reduce(numbers.data());
  if (test::ranks() > 1) {
    EXPECT_EQ(tree.choice().by, "shared memory");
  }
  const auto by_messages = [](PlanBy by, int root) {
    ReductionOptions o;
    o.on_node = false, o.planning.by = by, o.root = root;
    return o;
  };
  for (const PlanBy by : {PlanBy::model, PlanBy::measured, PlanBy::timing})
    for (const int root : {-1, test::ranks() - 1}) {
      tree.reduce_by(by_messages(by, root));
      for (int again = 0; again < 3; ++again) {
        const double got = tree.reduce(numbers.data());
        EXPECT_TRUE((root >= 0 && root != test::rank()) || got == expected);
      }
      const ScheduleChoice choice = tree.choice();
      EXPECT_EQ(choice.by, by == PlanBy::model ? "model" : by == PlanBy::measured ? "measured costs" : "timing");
      EXPECT_EQ(choice.times.empty(), by != PlanBy::timing);
      Schedule::parse(choice.schedule, test::ranks());
    }
  ReductionOptions exact{ReductionMethod::exact_over_tiles};
  tree.reduce_by(exact);
  const double sum = tree.reduce(numbers.data());
  EXPECT_EQ(tree.choice().by, "model");
  exact.planning.by = PlanBy::timing;
  tree.reduce_by(exact);
  EXPECT_EQ(tree.reduce(numbers.data()), sum);
  EXPECT_EQ(tree.choice().by, "timing");
  tree.reduce_by({ReductionMethod::binary_tree});
  EXPECT_EQ(tree.choice().text(), "binary tree");
}

TEST(Planning, ThatDiffersBetweenRanksIsRefused) {
  if (test::ranks() < 2) return;
  const bool first = test::rank() == 0;
  test::expect_refusal("differs between ranks", [&] { chosen({.by = first ? PlanBy::timing : PlanBy::model}); });
  test::expect_refusal("differs between ranks", [&] { chosen({.costs = {.latency_ns = first ? 1.0 : 2.0}}); });
  ArrayReducer<double> tree(MPI_COMM_WORLD, 2);
  test::expect_refusal("differs between ranks", [&] {
    ReductionOptions o;
    o.planning.candidates = first ? 2 : 3;
    tree.reduce_by(o);
  });
}

}  // namespace
}  // namespace isohalo
