/// `isohalo schedule --measure`: message costs and candidate schedules timed between the ranks of this job.

#include <fmt/format.h>

#include <cmath>

#include "apps/common/report.hpp"
#include "apps/isohalo/schedule_command.hpp"
#include "apps/isohalo/schedule_table.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/reduce/schedule_choice.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

double time_of(const ScheduleChoice& choice) {
  for (const auto& [schedule, ns] : choice.times)
    if (schedule == choice.schedule) return ns;
  return 0;
}

}  // namespace

void measure_schedules(const Communicator& comm, const ScheduleRequest& request) {
  if (request.ranks != 0 && request.ranks != comm.size())
    throw UsageError(
        fmt::format("isohalo schedule --measure: --ranks {} but this job has {}: start it with mpiexec "
                    "-n {}, or leave --ranks out",
                    request.ranks, comm.size(), request.ranks));
  if (!(request.options.bytes >= 1 && request.options.bytes <= 1e9))
    throw UsageError(fmt::format("isohalo schedule --measure: --bytes {}: give 1 to 1e9", request.options.bytes));
  const auto bytes = static_cast<std::int64_t>(std::ceil(request.options.bytes));
  agreed(comm, [&] {  // at once, not when all is measured
    if (comm.rank() == 0 && !request.table.empty()) ScheduleTable::read(request.table);
  });
  detail::ChoiceRequest choice_request;
  choice_request.plan.bytes = static_cast<double>(bytes);
  choice_request.plan.for_sets = request.for_sets;
  choice_request.plan.rank_order = request.rank_order;
  choice_request.value_bytes = static_cast<std::size_t>(bytes);
  choice_request.program = [&](const Schedule& s) { return detail::plain_program(s, comm.rank()); };
  Planning planning{.by = PlanBy::timing};
  if (request.candidates > 1) planning.candidates = request.candidates;
  const ScheduleChoice choice = detail::choose_schedule(comm, planning, choice_request, comm.take_tags(1));
  on_root(comm, [&] {
    const std::string machine = request.machine.empty() ? machine_text() : request.machine;
    Json json{{"machine", machine},
              {"ranks", comm.size()},
              {"bytes", bytes},
              {"schedule", choice.schedule},
              {"planned_by", choice.by},
              {"time_ns", time_of(choice)},
              {"costs",
               {{"latency_ns", choice.costs.latency_ns},
                {"pipeline_latency_ns", choice.costs.pipeline_ns},
                {"per_byte_ns", choice.costs.per_byte_ns}}},
              {"candidates", Json::array()}};
    for (const auto& [schedule, ns] : choice.times)
      json["candidates"].push_back(
          {{"schedule", schedule}, {"time_ns", ns}, {"chosen", schedule == choice.schedule}});
    if (!request.table.empty()) {
      ScheduleTable table = ScheduleTable::read(request.table);
      table.put({machine, comm.size(), bytes, choice.schedule, time_of(choice), "timing"});
      table.write(request.table);
      json["table"] = request.table;
    }
    print_report(MPI_COMM_SELF, request.json, json, true);
  });
}

}  // namespace isohalo
