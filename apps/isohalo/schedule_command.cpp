#include "apps/isohalo/schedule_command.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "apps/common/option_text.hpp"
#include "apps/common/report.hpp"
#include "apps/isohalo/schedule_table.hpp"
#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/whole_file.hpp"
#include "framework/run/machine.hpp"
#include "framework/schedule/chooser.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "framework/simulate/timeline.hpp"

namespace isohalo {

namespace {

constexpr int kListedRanks = 4096;  // whose finish times JSON lists one by one
constexpr std::size_t kMostEnumerated = 50'000;

SimulationOptions options_of(const ScheduleRequest& request) {
  SimulationOptions options = request.options;
  options.model = request.model == "postal"  ? NetworkModel::postal
                  : request.model == "loggp" ? NetworkModel::loggp
                                             : NetworkModel::pipelining;
  read_topology(request.topology, options);
  return options;
}

/// Rank 0's part of the command.
class ScheduleReport {
 public:
  explicit ScheduleReport(const ScheduleRequest& request) : request_(request), options_(options_of(request)) {
    plan_options_ = {.costs = options_.costs,
                     .bytes = options_.bytes,
                     .for_sets = request.for_sets,
                     .rank_order = request.rank_order};
  }

  void run() {
    std::string planned_by;
    const Schedule schedule = request_.simulate      ? Schedule::parse(request_.text, request_.ranks)
                              : request_.elimination ? elimination(request_.ranks)
                                                     : planned(planned_by);
    options_.record_tasks = !request_.svg.empty() && schedule.ranks() <= kTimelineRanks;
    const SimulationResult result = simulate(schedule, options_);
    Json json = summary(schedule, result);
    if (request_.json && schedule.ranks() <= kListedRanks) json["rank_finish_ns"] = result.finish_ns;
    if (!planned_by.empty()) json["planned_by"] = planned_by;
    if (request_.best && (request_.simulate || request_.elimination)) json["best"] = best();
    if (request_.enumerate) {
      json["schedules"] = enumerated();
      json["enumerated"] = json["schedules"].size();
    }
    write(request_.svg, [&](std::ostream& out) { write_svg(out, schedule, options_, result); });
    write(request_.goal, [&](std::ostream& out) { write_goal(out, schedule, options_); });
    print_report(MPI_COMM_SELF, request_.json, json, true);
  }

 private:
  Json summary(const Schedule& schedule, const SimulationResult& result) const {
    Json stages = Json::array(), path = Json::array();
    for (int s = 0; s < schedule.size(); ++s) {
      const auto at = static_cast<std::size_t>(s);
      const auto [first, last] = std::minmax_element(result.begin_ns[at].begin(), result.begin_ns[at].end());
      stages.push_back({{"stage", to_text(schedule.stages()[at])},
                        {"messages", result.messages[at]},
                        {"bytes", static_cast<double>(result.messages[at]) * options_.bytes},
                        {"most_sends", schedule.most_sends(s)},
                        {"first_entered_ns", *first},
                        {"last_entered_ns", *last}});
    }
    for (const auto& step : result.critical_path) {
      path.push_back({{"stage", step.stage + 1},
                      {"rank", step.rank},
                      {"waited_for", nullptr},
                      {"begin_ns", step.begin_ns},
                      {"end_ns", step.end_ns}});
      if (step.waited_for >= 0) path.back()["waited_for"] = step.waited_for;
    }
    return {{"ranks", schedule.ranks()},
            {"schedule", schedule.text()},
            {"stages", schedule.size()},
            {"messages", schedule.messages()},
            {"bytes", options_.bytes},
            {"model", request_.model},
            {"model_ns", model_ns(schedule, options_.costs, options_.bytes)},
            {"finish_ns", result.last_ns},
            {"first_finish_ns", result.first_ns},
            {"skew_ns", result.last_ns - result.first_ns},
            {"correct", true},  // Schedule has run it on numbers, or there would be none
            {"for_sets_only", schedule.for_sets_only()},
            {"per_stage", stages},
            {"critical_path", path}};
  }

  /// The schedule of the table, or else of the model.
  Schedule planned(std::string& by) const {
    by = "table";
    if (!request_.table.empty()) {
      if (!std::filesystem::exists(request_.table))
        throw UsageError("schedule table " + request_.table +
                         ": there is none; isohalo schedule --measure writes one");
      const std::string machine = request_.machine.empty() ? machine_text() : request_.machine;
      const auto bytes = static_cast<std::int64_t>(std::ceil(options_.bytes));
      const auto found = ScheduleTable::read(request_.table).find(machine, request_.ranks, bytes);
      const bool fits = found && (request_.for_sets || !found->for_sets_only()) &&
                        (!request_.rank_order || keeps_rank_order(*found));
      if (fits) return *found;
    }
    if (request_.candidates > 1) {
      by = "simulation";
      const auto plans =
          plan_candidates(request_.ranks, plan_options_, static_cast<std::size_t>(request_.candidates));
      std::vector<double> ns;
      for (const Plan& plan : plans) ns.push_back(finish_ns(plan.schedule));
      return plans[detail::fastest(ns)].schedule;
    }
    by = "model";
    return plan_by_model(request_.ranks, plan_options_).schedule;
  }

  Json best() const {
    std::string by;
    const Schedule schedule = planned(by);
    return {{"schedule", schedule.text()},
            {"planned_by", by},
            {"model_ns", model_ns(schedule, options_.costs, options_.bytes)},
            {"finish_ns", finish_ns(schedule)}};
  }

  double finish_ns(const Schedule& schedule) const {
    SimulationOptions options = options_;
    options.record_tasks = false;
    return simulate(schedule, options).last_ns;
  }

  /// All schedules within the limits, cheapest by the model first.
  Json enumerated() const {
    const EnumerationLimits limits{.most_sends = request_.most_sends, .most_stages = request_.most_stages};
    std::size_t count = 0;
    for_each_schedule(request_.ranks, limits, [&](const auto&) { return ++count <= kMostEnumerated; });
    if (count > kMostEnumerated)
      throw UsageError("--enumerate: " + std::to_string(request_.ranks) + " ranks have more than " +
                       std::to_string(kMostEnumerated) + " schedules: set --max-sends or --max-stages");
    std::vector<Json> list;
    for_each_schedule(request_.ranks, limits, [&](const std::vector<Stage>& stages) {
      const Schedule schedule(stages, request_.ranks);
      list.push_back({{"schedule", schedule.text()},
                      {"stages", schedule.size()},
                      {"messages", schedule.messages()},
                      {"model_ns", model_ns(schedule, options_.costs, options_.bytes)},
                      {"finish_ns", finish_ns(schedule)}});
      return true;
    });
    std::stable_sort(list.begin(), list.end(), [](const Json& a, const Json& b) {
      return a["model_ns"].get<double>() < b["model_ns"].get<double>();
    });
    return list;
  }

  template <class F>
  static void write(const std::string& file, const F& writer) {
    if (file.empty()) return;
    std::ostringstream out;
    writer(out);
    try {
      write_whole(file, out.str());
    } catch (const RunError& e) {
      throw UsageError(e.what());
    }
  }

  const ScheduleRequest& request_;
  SimulationOptions options_;
  PlanOptions plan_options_;
};

}  // namespace

CLI::App* add_schedule_command(CLI::App& app, ScheduleRequest& r) {
  auto* c = app.add_subcommand("schedule", "Schedules of an allreduce: the best one, all, and how long they take");
  auto* const ranks = c->add_option("--ranks", r.ranks, "number of ranks");
  auto* const best = c->add_flag("--best", r.best, "the best schedule by the cost model (the default)");
  auto* const enumerate =
      c->add_flag("--enumerate", r.enumerate, "all factorisations, collapses and merges, cheapest first");
  auto* const simulate = c->add_option("--simulate", r.text, "simulate this schedule, as m1g2a3,n1g3a2");
  simulate->each([&r](const std::string&) { r.simulate = true; });
  auto* const elimination =
      c->add_flag("--elimination", r.elimination, "simulate Rabenseifner's 3-2 and 2-1 eliminations");
  simulate->excludes(elimination);
  auto* const measure =
      c->add_flag("--measure", r.measure,
                  "time the best schedules between the ranks of this job (mpiexec); --table: enter the best there");
  auto* const halo = c->add_option("--halo", r.halo, "the halo exchange of this input on --ranks ranks, simulated");
  auto* const neighborhood = c->add_option("--neighborhood", r.neighborhood,
                                           "an isomorphic alltoall, simulated: moore:RADIUS or von_neumann:RADIUS "
                                           "on the torus of --mesh, blocks of --bytes");
  neighborhood->needs(c->add_option("--mesh", r.mesh, "processes along each dimension, as 8,8,4")->delimiter(','));
  auto* const table2 =
      c->add_flag("--table2", r.table2, "the cost model beside Table 2 of Ruefenacht, Bull, Booth 2017");
  c->add_option("--max-sends", r.most_sends, "enumerate: messages of a rank in a stage")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--max-stages", r.most_stages, "enumerate: stages")->check(CLI::NonNegativeNumber);
  c->add_flag("--for-sets", r.for_sets, "best: dissemination (dK) may be chosen");
  c->add_flag("--rank-order", r.rank_order, "best: for operations that do not commute");
  c->add_option("--candidates", r.candidates,
                "best: of the N best by the cost model the one that simulates fastest")
      ->check(CLI::Range(1, 1000000));
  c->add_option("--table", r.table, "best: a file of schedules that were found best, asked before the model");
  c->add_option("--machine", r.machine, "best: the machine to look for in the table, else this one");
  c->add_option("--model", r.model, "network model")->check(CLI::IsMember({"postal", "pipelining", "loggp"}));
  SimulationOptions& o = r.options;
  c->add_option("--latency", o.costs.latency_ns, "ns that may overlap with further sends (alpha_p; L)");
  c->add_option("--pipeline-latency", o.costs.pipeline_ns, "ns that may not (alpha_r; o)");
  c->add_option("--per-byte", o.costs.per_byte_ns, "ns per byte (beta; G)");
  c->add_option("--compute", o.costs.compute_ns, "ns for taking a message");
  c->add_option("--gap", o.gap_ns, "loggp: ns between messages (g), else as --pipeline-latency")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--bytes", o.bytes, "size of a message");
  c->add_option("--skew", o.skew_ns, "ranks start at random times below this, ns");
  c->add_option("--noise", o.noise_ns, "messages are late by random times below this, ns");
  c->add_option("--seed", o.seed, "of the random times");
  c->add_option("--topology", r.topology, "two levels: RANKS_PER_NODE[:LATENCY,PIPELINE,PER_BYTE within a node]");
  c->add_option("--congestion", o.inlet_ns, "a rank lets in one message at a time, each for so many ns");
  auto* const svg = c->add_option("--svg", r.svg, "write a timeline (up to 64 ranks; beyond, a summary)");
  auto* const goal = c->add_option("--goal", r.goal, "write GOAL text, as LogGOPSim reads it");
  for (auto* const other : {best, enumerate, simulate, elimination, svg, goal})
    measure->excludes(other), table2->excludes(other), halo->excludes(other), neighborhood->excludes(other);
  halo->excludes(measure)->excludes(table2)->excludes(neighborhood)->needs(ranks);
  neighborhood->excludes(measure)->excludes(table2)->excludes(ranks);
  table2->excludes(measure)->excludes(ranks);
  c->add_flag("--json", r.json, "print JSON");
  return c;
}

ExitCode schedule_command(MPI_Comm user, const ScheduleRequest& request, const SolverKinds& kinds) {
  const Communicator comm = Communicator::of(user);
  if (request.measure) {
    measure_schedules(comm, request);
    return ExitCode::fine;
  }
  if (!request.halo.empty() && request.ranks < 1)
    throw UsageError("isohalo schedule --halo needs --ranks, 1 at least");
  if (!request.halo.empty() || !request.neighborhood.empty()) {
    report_exchanges(comm, request, made_on_all(comm, [&] { return options_of(request); }), kinds);
    return ExitCode::fine;
  }
  on_root(comm, [&] {
    if (request.table2) return report_table2(request.json);
    if (request.ranks == 0)
      throw UsageError("isohalo schedule needs --ranks, 1 at least (or --table2, --measure, --neighborhood)");
    ScheduleReport(request).run();
  });
  return ExitCode::fine;
}

}  // namespace isohalo
