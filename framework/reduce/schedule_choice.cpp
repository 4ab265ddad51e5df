#include "framework/reduce/schedule_choice.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <deque>
#include <numeric>

#include "framework/reduce/multicast.hpp"
#include "framework/reduce/program_executor.hpp"
#include "framework/schedule/chooser.hpp"

namespace isohalo {

std::string ScheduleChoice::text() const {
  std::string s = schedule.empty() ? by : schedule + " by " + by;
  for (std::size_t k = 0; k < times.size(); ++k) {
    char us[32];
    std::snprintf(us, sizeof us, " %.1f us", times[k].second * 1e-3);
    s += (k == 0 ? " (" : ", ") + times[k].first + us;
  }
  return times.empty() ? s : s + ")";
}

namespace detail {

namespace {

/// Nanoseconds of each candidate, by values that mean nothing. Collective.
std::vector<double> time_candidates(const Communicator& comm, const std::vector<Plan>& plans,
                                    const ChoiceRequest& request, int tag) {
  std::deque<ProgramExecutor> candidates;
  for (const Plan& plan : plans)
    candidates.emplace_back(comm, request.value_bytes, tag).compile(request.program(plan.schedule));
  const auto run = [&](std::size_t k, int calls) {
    return seconds_of([&] {
             for (int call = 0; call < calls; ++call) candidates[k].start(), candidates[k].wait();
           }) /
           calls;
  };
  double first = run(0, 1);
  comm.allreduce(&first, 1, MPI_DOUBLE, MPI_MAX);
  const int calls = first > 1e-3 ? 1 : 4;  // in a row, so that ranks which set off late weigh less
  auto times = least_seconds(comm, candidates.size(), [&](std::size_t k) { return run(k, calls); });
  for (double& t : times) t *= 1e9;
  return times;
}

}  // namespace

ScheduleChoice choose_schedule(const Communicator& comm, const Planning& planning, const ChoiceRequest& request,
                               int tag) {
  const std::vector<int> taking_part = request.ranks.empty() ? all_ranks(comm.size()) : request.ranks;
  const int ranks = static_cast<int>(taking_part.size());
  ScheduleChoice choice{.costs = planning.costs};
  if (planning.by != PlanBy::model) {
    choice.costs = measured_costs(comm, taking_part);
    choice.by = "measured costs";
  }
  PlanOptions options = request.plan;
  options.costs = choice.costs;
  if (planning.by != PlanBy::timing) {
    choice.schedule = plan_by_model(ranks, options).schedule.text();
    return choice;
  }
  choice.by = "timing";
  const auto plans = plan_candidates(ranks, options, static_cast<std::size_t>(std::max(planning.candidates, 1)));
  const std::vector<double> ns = time_candidates(comm, plans, request, tag);
  for (std::size_t k = 0; k < plans.size(); ++k) choice.times.emplace_back(plans[k].schedule.text(), ns[k]);
  choice.schedule = choice.times[fastest(ns)].first;
  return choice;
}

ReduceProgram plain_program(const Schedule& schedule, int rank) {
  ReduceProgram program(1);
  for (int s = 0; s < schedule.size(); ++s) {
    const StageActions actions = schedule.actions(s, rank);
    for (const int to : actions.send) program.back().send.push_back({to, {0}});
    program.emplace_back();
    for (const int from : actions.receive) program.back().receive.push_back({from, {0}});
  }
  return program;
}

std::vector<int> all_ranks(int ranks) {
  std::vector<int> list(static_cast<std::size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

std::string to_text(const Planning& planning) {
  const auto& c = planning.costs;
  const auto all_digits = [](double v) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
  };
  std::string text = "by " + std::to_string(static_cast<int>(planning.by)) + ", candidates " +
                     std::to_string(planning.candidates) + ", costs";
  for (const double v : {c.latency_ns, c.pipeline_ns, c.per_byte_ns}) text += " " + all_digits(v);
  return text;
}

}  // namespace detail

}  // namespace isohalo
