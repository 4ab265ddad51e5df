/// `isohalo bench allreduce --emulate`: the real engines with messages that take as long as on a network, against
/// the simulator's prediction for the same schedules.

#include "apps/bench/emulated.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "apps/bench/timing.hpp"
#include "framework/reduce/allreduce.hpp"
#include "framework/reduce/tree_reducer.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "framework/simulate/simulator.hpp"

namespace isohalo {

namespace {

MessageCosts costs_of(const EmulatedLatency& e) {
  return {.latency_ns = e.latency_s * 1e9, .pipeline_ns = e.pipeline_s * 1e9, .per_byte_ns = 0, .compute_ns = 0};
}

/// The best of the candidates of one kind; none if there is none.
std::optional<Schedule> best_with(int ranks, const PlanOptions& options, StageKind kind) {
  for (const Plan& plan : plan_candidates(ranks, options, 100000))
    if (std::any_of(plan.schedule.stages().begin(), plan.schedule.stages().end(),
                    [kind](const Stage& s) { return s.kind == kind; }))
      return plan.schedule;
  return std::nullopt;
}

/// What is compared, by name: recursive doubling with MPI's collapse, the best of each kind, the planner's choice.
std::map<std::string, Schedule> schedules_to_compare(int ranks, const MessageCosts& costs) {
  PlanOptions options;
  options.costs = costs;
  std::map<std::string, Schedule> list;
  list.emplace("recursive_doubling", recursive_doubling(ranks));
  list.emplace("elimination", elimination(ranks));
  if (auto s = best_with(ranks, options, StageKind::collapse)) list.emplace("collapse", *s);
  if (auto s = best_with(ranks, options, StageKind::merge)) list.emplace("merge", *s);
  list.emplace("planned_sum", plan_by_model(ranks, options).schedule);
  options.for_sets = true;
  list.emplace("planned_sets", plan_by_model(ranks, options).schedule);
  list.emplace("dissemination_2", dissemination(ranks, 2));
  // The messages of a stage that make a large allreduce cheapest (Ruefenacht, Bull, Booth 2017, equation 5).
  const auto cost = [&](int sends) { return costs.stage_ns(sends, 0) / std::log(sends + 1); };
  int fan_out = 1;
  while (fan_out + 1 < ranks && cost(fan_out + 1) < cost(fan_out)) ++fan_out;
  if (fan_out > 1) list.emplace("dissemination_best", dissemination(ranks, fan_out + 1));
  return list;
}

struct Agreement {
  int pairs = 0, agree = 0;
};

/// Of every pair of schedules that the simulator holds to differ by more than `margin`, how many were timed in its
/// order.
Agreement order_agreement(const std::vector<std::pair<double, double>>& simulated_and_timed, double margin) {
  Agreement found;
  for (const auto& a : simulated_and_timed)
    for (const auto& b : simulated_and_timed)
      if (a.first * (1 + margin) < b.first) ++found.pairs, found.agree += a.second < b.second;
  return found;
}

/// Pairs closer than a tenth are not told apart by the clock; a half is beyond what a busy machine adds.
constexpr double kToldApart = 0.1, kSurelyApart = 0.5;

}  // namespace

Json bench_emulated(const Communicator& comm, const EmulatedLatency& emulate, int repeats, bool& right,
                    bool& in_order) {
  const int p = comm.size();
  const MessageCosts costs = costs_of(emulate);
  // A frontier of several values per rank: blocks of 3 x 5 tiles.
  DomainOptions<2> cut;
  cut.cuts.emplace();
  for (int c = 0; c <= p; ++c) (*cut.cuts)[0].push_back(c * 48);
  (*cut.cuts)[1] = {0, 70};
  const CartesianDomain<2> domain(comm.get(), {p * 48, 70}, cut);
  const auto value = [&domain](const Index<2>& i) {
    return 1.0 / static_cast<double>(1 + linear_index(domain.global(), i));
  };
  TreeReducer<double, 2, Sum> tree(domain);
  const double expected = tree.reduce(value);
  const EmulatedNetwork network(domain.comm(), emulate);
  const auto time = [&](const std::function<bool()>& correct) {
    constexpr int calls = 4;  // so that ranks which set off late weigh less
    return median_of(repeats, [&] { return 1e3 * timed_calls(comm, calls, [&] { right = correct() && right; }); });
  };
  const auto time_tree = [&](const ReductionOptions& options) {
    tree.reduce_by(options);
    return time([&] { return tree.reduce(value) == expected; });
  };
  Json rows;
  std::vector<std::pair<double, double>> order;
  double doubling = 0, planned = 0;
  for (const auto& [name, schedule] : schedules_to_compare(p, costs)) {
    const double simulated = simulate(schedule, {.costs = costs}).last_ns * 1e-6;
    const double timed_ms = time_tree({ReductionMethod::tree, schedule.text(), false, false});
    order.emplace_back(simulated, timed_ms);
    if (name == "recursive_doubling") doubling = timed_ms;
    if (name == "planned_sets") planned = timed_ms;
    rows.push_back(
        {{"name", name}, {"schedule", schedule.text()}, {"simulated_ms", simulated}, {"tree_ms", timed_ms}});
    if (schedule.for_sets_only()) continue;
    ScheduledAllreduce plain(comm.get(), 1, MPI_INT, MPI_SUM, schedule.text());
    rows.back()["plain_ms"] = time([&] {
      int one = 1;
      plain.reduce(&one);
      return one == p;
    });
  }
  const double binary = time_tree({ReductionMethod::binary_tree, "auto", false, false});
  rows.push_back({{"name", "binary_tree"}, {"tree_ms", binary}});
  const Agreement all = order_agreement(order, kToldApart), sure = order_agreement(order, kSurelyApart);
  in_order = in_order && sure.agree == sure.pairs;
  return {{"latency_ms", emulate.latency_s * 1e3},
          {"send_ms", emulate.pipeline_s * 1e3},
          {"frontier_of_this_rank", tree.frontier_size()},
          {"methods", rows},
          {"order",
           {{"pairs", all.pairs},
            {"in_the_simulators_order", all.agree},
            {"surely_apart", sure.pairs},
            {"of_them_in_order", sure.agree}}},
          {"planned_to_recursive_doubling", planned / doubling}};
}

}  // namespace isohalo
