/// Table 2 of Ruefenacht, Bull, Booth 2017 by the cost model.

#include <algorithm>

#include "apps/common/report.hpp"
#include "apps/isohalo/schedule_command.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

namespace {

/// A row: the schedule that was fastest on ARCHER, and the least times measured, in microseconds.
struct Measured {
  int ranks;
  const char* schedule;
  double doubling_us, multiplying_us;
};

constexpr Measured kTable2[] = {
    {4, "a4", 2.36, 1.87},        {6, "a6", 4.76, 2.87},        {8, "a2,a4", 4.37, 3.54},
    {12, "a3,a4", 7.03, 4.43},    {16, "a4,a4", 6.85, 4.98},    {24, "a4,a6", 9.99, 6.91},
    {32, "a8,a4", 12.9, 8.95},    {48, "a8,a6", 19.8, 13.3},    {64, "a8,a8", 24.2, 16.5},
    {96, "a8,a3,a4", 25.3, 20.7}, {128, "a8,a4,a4", 25.1, 17.9}};

/// The bases, whatever their order; a schedule with other stages has none in common with a factorisation.
std::vector<std::pair<StageKind, int>> factors(const Schedule& schedule) {
  std::vector<std::pair<StageKind, int>> list;
  for (const Stage& s : schedule.stages()) list.emplace_back(s.kind, s.base);
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

void report_table2(bool json) {
  const MessageCosts costs{.latency_ns = 1340, .pipeline_ns = 340, .per_byte_ns = 0, .compute_ns = 0};
  Json rows = Json::array();
  int agree = 0;
  for (const Measured& m : kTable2) {
    const Schedule paper = Schedule::parse(m.schedule, m.ranks);
    const Plan best = plan_by_model(m.ranks, {.costs = costs});
    const double doubling = model_ns(recursive_doubling(m.ranks), costs, 8), of_paper = model_ns(paper, costs, 8);
    const bool same = factors(paper) == factors(best.schedule);
    agree += same;
    rows.push_back({{"ranks", m.ranks},
                    {"paper_schedule", m.schedule},
                    {"best_schedule", best.schedule.text()},
                    {"same_factors", same},
                    {"doubling_model_ns", doubling},
                    {"paper_model_ns", of_paper},
                    {"best_model_ns", best.model_ns},
                    {"paper_model_ratio", of_paper / doubling},
                    {"best_model_ratio", best.model_ns / doubling},
                    {"paper_measured_ratio", m.multiplying_us / m.doubling_us}});
  }
  print_report(MPI_COMM_SELF, json,
               {{"latency_ns", costs.latency_ns},
                {"pipeline_latency_ns", costs.pipeline_ns},
                {"ratios_to", "recursive doubling"},
                {"same_factors", agree},
                {"cases", rows.size()},
                {"rows", rows}},
               true);
}

}  // namespace isohalo
