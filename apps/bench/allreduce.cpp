/// `isohalo bench allreduce`: reproducible reductions of 8 bytes against MPI_Allreduce, the local pass against a
/// sum in any order, and arrays as large as those of Stelz 2022 (table 4.1).

#include "framework/reduce/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/distributions.hpp"
#include "apps/bench/emulated.hpp"
#include "apps/bench/owned_comm.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/option_text.hpp"
#include "apps/common/report.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/reduce/array_reducer.hpp"
#include "framework/reduce/reduction_plan.hpp"
#include "framework/reduce/tree_reducer.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

namespace {

/// One way to reduce: returns the result of a call.
struct Contender {
  std::string name;
  std::function<double()> run;
};

/// Microseconds of each. A call is repeated so often that a measurement takes about `target_us`, as the slowest
/// rank sees it.
Turns measure(const Communicator& comm, const std::vector<Contender>& contenders, int repeats, double target_us) {
  std::vector<std::function<double()>> ways;
  for (const Contender& c : contenders) {
    const auto once = [&](int count) { return 1e6 * timed_calls(comm, count, c.run); };
    once(2);
    const auto calls = static_cast<int>(std::clamp(target_us / std::max(once(3), 0.01), 3.0, 20000.0));
    ways.push_back([once, calls] {
      once(calls / 4 + 1);  // the scheduler still holds the last one's busy waits against us
      return once(calls);
    });
  }
  return Turns(repeats, ways);
}

double mpi_allreduce(const Communicator& comm, double v) {
  mpi_check(MPI_Allreduce(MPI_IN_PLACE, &v, 1, MPI_DOUBLE, MPI_SUM, comm.get()), "MPI_Allreduce", comm.get());
  return v;
}

/// One number per rank. MPI_Allreduce is the first contender.
std::vector<Contender> small_contenders(const Communicator& comm, const double& number) {
  std::vector<Contender> list;
  list.push_back({"mpi_allreduce", [&] { return mpi_allreduce(comm, number); }});
  const auto add = [&](const std::string& name, const ReductionOptions& options) {
    auto reducer = std::make_shared<ArrayReducer<double>>(comm.get(), 1, Sum(), options, 1);
    list.push_back({name, [reducer, &number] { return reducer->reduce(&number); }});
  };
  add("tree", {});
  add("tree_messages", {ReductionMethod::tree, "auto", false, false});
  add("binary_tree", {ReductionMethod::binary_tree});
  add("exact", {ReductionMethod::exact_over_tiles});
  auto plain = std::make_shared<ScheduledAllreduce>(comm.get(), 1, MPI_DOUBLE, MPI_SUM);
  list.push_back({"scheduled", [plain, &number] {
                    double v = number;
                    plain->reduce(&v);
                    return v;
                  }});
  return list;
}

/// A sum in whatever order is fastest: eight vectors of lanes.
double any_order_sum(const std::vector<double>& v) {
  constexpr std::size_t lanes = 64;
  double acc[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= v.size(); i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) acc[l] += v[i + l];
  double sum = 0;
  for (; i < v.size(); ++i) sum += v[i];
  for (const double a : acc) sum += a;
  return sum;
}

double left_to_right_sum(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

/// Numbers of rank `rank` of N, the same for every distribution.
std::vector<double> numbers(const RangeStarts& starts, int rank) {
  std::vector<double> v;
  for (std::int64_t i = starts[static_cast<std::size_t>(rank)]; i < starts[static_cast<std::size_t>(rank) + 1]; ++i)
    v.push_back(-40 * number_of(static_cast<std::uint64_t>(i + 1) * kGolden));  // like log-likelihoods
  return v;
}

/// Largest minus smallest result over the first 1 .. p ranks (Stelz 2022, table 4.2).
Json spread_over_ranks(const Communicator& comm, std::int64_t n) {
  std::vector<double> naive, tree, exact;
  for (int q = 1; q <= comm.size(); ++q) {
    const OwnedComm some = first_ranks(comm.get(), q);
    double results[3] = {};
    if (comm.rank() < q) {
      const auto mine = numbers(upper_distribution(n, q), comm.rank());
      const auto count = static_cast<std::int64_t>(mine.size());
      results[0] = mpi_allreduce(Communicator::of(some.comm), left_to_right_sum(mine));
      results[1] = ArrayReducer<double>(some.comm, count).reduce(mine.data());
      results[2] =
          ArrayReducer<double>(some.comm, count, {}, {ReductionMethod::exact_over_tiles}).reduce(mine.data());
    }
    comm.broadcast(results, sizeof results, 0);
    naive.push_back(results[0]), tree.push_back(results[1]), exact.push_back(results[2]);
  }
  const auto spread = [](const std::vector<double>& v) {
    return *std::max_element(v.begin(), v.end()) - *std::min_element(v.begin(), v.end());
  };
  return {{"local_sum_mpi_allreduce", spread(naive)}, {"tree", spread(tree)}, {"exact", spread(exact)}};
}

/// The thesis' experiment for one N: time of each way, and whether the tree's result is the same on fewer ranks.
Json array_case(const Communicator& comm, std::int64_t n, int repeats, bool& right) {
  const auto starts = upper_distribution(n, comm.size());
  const auto mine = numbers(starts, comm.rank());
  const auto count = static_cast<std::int64_t>(mine.size());
  ArrayReducer<double> tree(comm.get(), count), binary(comm.get(), count, {}, {ReductionMethod::binary_tree}, 1),
      tiles(comm.get(), count, {}, {ReductionMethod::exact_over_tiles}),
      terms(comm.get(), count, {}, {ReductionMethod::exact_over_terms});
  std::vector<Contender> list{
      {"local_sum_mpi_allreduce", [&] { return mpi_allreduce(comm, left_to_right_sum(mine)); }},
      {"tree", [&] { return tree.reduce(mine.data()); }},
      {"binary_tree_of_single_numbers", [&] { return binary.reduce(mine.data()); }},
      {"exact_over_tiles", [&] { return tiles.reduce(mine.data()); }},
      {"exact_over_terms", [&] { return terms.reduce(mine.data()); }}};
  const Turns us = measure(comm, list, repeats, 2e4);
  Json json{{"numbers", n},
            {"messages_lower", message_count(lower_distribution(n, comm.size()))},
            {"messages_upper", message_count(starts)},
            {"messages_power_of_two", message_count(power_of_two_distribution(n, comm.size()))},
            {"messages_optimised_0.2", message_count(optimised_distribution(n, comm.size(), 0.2))}};
  const auto other = numbers(lower_distribution(n, comm.size()), comm.rank());
  ArrayReducer<double> again(comm.get(), static_cast<std::int64_t>(other.size()), {},
                             {ReductionMethod::binary_tree});
  right = right && again.reduce(other.data()) == list[1].run();
  json["spread_over_ranks"] = spread_over_ranks(comm, n);
  right = right && json["spread_over_ranks"]["tree"] == 0.0 && json["spread_over_ranks"]["exact"] == 0.0;
  for (std::size_t k = 0; k < list.size(); ++k) {
    json[list[k].name + "_us"] = us.middle(k);
    if (k > 0) json[list[k].name + "_slowdown"] = us.middle(k) / us.middle(0);
  }
  return json;
}

/// A pass over the numbers as a grid of D dimensions, without communication.
template <int D>
std::function<double()> grid_pass(const std::vector<double>& numbers, const Index<D>& shape) {
  const CartesianDomain<D> grid(MPI_COMM_SELF, shape);
  const auto tree = std::make_shared<TreeReducer<double, D, Sum>>(grid);
  return [tree, box = grid.global(), &numbers] {
    tree->run_all([&](const Index<D>& i, std::int64_t) {
      const double* const row = &numbers[static_cast<std::size_t>(linear_index(box, i))];
      return [row](std::int64_t x) { return row[x]; };
    });
    return tree->combine();
  };
}

/// How fast one rank reads and reduces, as an array and as grids of the same numbers.
Json local_pass(const Communicator& comm, int repeats, bool& right) {
  const std::int64_t n = std::int64_t{1} << 24;  // 128 MiB, larger than any cache here
  const auto mine = numbers({0, n}, 0);
  ArrayReducer<double> tree(MPI_COMM_SELF, n);
  std::vector<Contender> list{{"any_order_sum", [&] { return any_order_sum(mine); }},
                              {"tree", [&] { return tree.reduce(mine.data()); }},
                              {"tree_2d", grid_pass<2>(mine, {4096, 4096})},
                              {"tree_3d", grid_pass<3>(mine, {256, 256, 256})},
                              {"tree_4d", grid_pass<4>(mine, {64, 64, 64, 64})},
                              {"tree_4d_long_rows", grid_pass<4>(mine, {16, 16, 256, 256})},
                              {"left_to_right_sum", [&] { return left_to_right_sum(mine); }}};
  const Turns us = measure(comm, list, repeats, 5e4);
  Json json{{"bytes", 8 * n}};
  for (std::size_t k = 0; k < list.size(); ++k)
    json[list[k].name + "_GB_per_s"] = 8e-3 * static_cast<double>(n) / us.middle(k);
  const double sum = any_order_sum(mine);
  for (std::size_t k = 0; k < list.size(); ++k) {
    right = right && std::abs(list[k].run() - sum) < 1e-3;
    if (list[k].name.starts_with("tree")) json[list[k].name + "_to_any_order"] = us.ratio(0, k);
  }
  return json;
}

/// What one of 105 ranks computes, without communication, before the first reduction over 1000^3 cells on 7 x 5 x 3
/// blocks: its frontier, the schedule and its program. Milliseconds, the most over every eighth rank. `tolerance`
/// for cuts beside the tree's own decides how many nodes there are.
double set_up_ms(const Index<3>& tile, double tolerance) {
  constexpr int p = 105;
  std::vector<int> ranks(p);
  std::iota(ranks.begin(), ranks.end(), 0);
  const Decomposition<3> blocks({1000, 1000, 1000}, {7, 5, 3}, tolerance);
  double most = 0;
  for (int rank = 0; rank < p; rank += 8)
    most = std::max(most, looped_calls(1, [&] {
                      const ReductionPlan<3> plan(Tiling<3>(blocks, tile), ranks);
                      const Plan best = plan_by_model(p, plan.plan_options(8));
                      const ReduceProgram program = plan.program(rank, p, {.schedule = best.schedule.text()});
                    }));
  return 1e3 * most;
}

}  // namespace

ExitCode bench_allreduce(MPI_Comm user, const BenchAllreduceOptions& options) {
  const Communicator comm = Communicator::of(user);
  const EmulatedLatency emulate = options.emulate.empty() ? EmulatedLatency{} : parse_latency(options.emulate);
  bool right = true, in_order = true;
  const double number = comm.rank() + 1;
  const std::vector<Contender> small = small_contenders(comm, number);
  for (const auto& c : small) right = right && c.run() == 0.5 * comm.size() * (comm.size() + 1);
  const Turns us = measure(comm, small, options.repeats, comm.oversubscribed() ? 5e4 : 1e4);
  Json json = report_of("allreduce");
  json["ranks"] = comm.size();
  for (std::size_t k = 0; k < small.size(); ++k) {
    json["8_bytes"][small[k].name + "_us"] = us.middle(k);
    if (k > 0) json["8_bytes"][small[k].name + "_to_mpi_allreduce"] = us.ratio(k, 0);
  }
  if (emulate.on()) json["emulated"] = bench_emulated(comm, emulate, options.repeats, right, in_order);
  if (options.local) {
    json["local_pass"] = local_pass(comm, options.repeats, right);
    json["set_up_ms"] = set_up_ms({8, 8, 8}, 0.1);
    json["set_up_by_default_ms"] = set_up_ms(default_tile<3>(), 0.02);
  }
  if (options.arrays)
    for (const std::int64_t n : {460, 767, 898, 1602, 239763, 504850, 1327505, 1806035, 3011099, 21410970})
      json["arrays"].push_back(array_case(comm, n, options.repeats, right));
  const bool all_right = comm.min(right) == 1, all_in_order = comm.min(in_order) == 1;
  json["results_right"] = all_right;
  if (emulate.on()) json["in_the_simulators_order"] = all_in_order;
  if (comm.rank() == 0 && !all_right) fmt::print(stderr, "isohalo: error: bench allreduce: a result is wrong\n");
  if (comm.rank() == 0 && !all_in_order)
    fmt::print(stderr,
               "isohalo: error: bench allreduce --emulate {}: schedules that the simulator holds to differ by half "
               "were not timed in its order; a busy machine may be the cause\n",
               options.emulate);
  return print_report(user, options.json, json, all_right && all_in_order);
}

}  // namespace isohalo
