/// Simulated exchanges with neighbors: the schedules that halo plans and neighborhoods run.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "apps/common/report.hpp"
#include "apps/isohalo/schedule_command.hpp"
#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/neighborhood/local_schedule.hpp"
#include "framework/neighborhood/offsets.hpp"
#include "framework/run/run.hpp"

namespace isohalo {

namespace {

/// One line of the report.
Json simulated(const std::string& name, const TrafficTable& traffic, const SimulationOptions& options) {
  std::int64_t messages = 0, most_messages = 0;
  double bytes = 0, most_bytes = 0;
  for (int r = 0; r < traffic.ranks(); ++r) {
    messages += traffic.messages_sent(r), most_messages = std::max(most_messages, traffic.messages_sent(r));
    bytes += traffic.bytes_sent(r), most_bytes = std::max(most_bytes, traffic.bytes_sent(r));
  }
  return {{"name", name},
          {"rounds", traffic.stages()},
          {"messages", messages},
          {"bytes", bytes},
          {"most_messages", most_messages},
          {"most_bytes", most_bytes},
          {"finish_ns", simulate(traffic, options).last_ns}};
}

/// "moore:2": the list of offsets, without the rank itself.
std::vector<int> offsets_of(const std::string& text, int dimensions) {
  const auto colon = text.find(':');
  const std::string shape = text.substr(0, colon), number = colon == text.npos ? "" : text.substr(colon + 1);
  int radius = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), radius);
  constexpr int most = 16;
  if ((shape != "moore" && shape != "von_neumann") || error != std::errc{} ||
      end != number.data() + number.size() || radius < 1 || radius > most)
    throw UsageError("--neighborhood " + text + ": give moore:RADIUS or von_neumann:RADIUS with a radius of 1 to " +
                     std::to_string(most));
  return ball_offsets(dimensions, radius, shape == "von_neumann", Self::leave_out);
}

Json neighborhood_report(const ScheduleRequest& request, const SimulationOptions& options) {
  const int dimensions = static_cast<int>(request.mesh.size());
  constexpr double most_ranks = 1 << 20;
  double ranks = 1;
  for (int n : request.mesh) ranks *= n;
  if (dimensions > 4 || *std::min_element(request.mesh.begin(), request.mesh.end()) < 1 || ranks > most_ranks)
    throw UsageError("--mesh: give 1 to 4 numbers of processes, each 1 or more, together at most 2^20");
  const Mesh torus(request.mesh, std::vector<bool>(request.mesh.size(), true));
  const std::vector<int> list = offsets_of(request.neighborhood, dimensions);
  constexpr double most_messages = 2.5e8;
  const double messages = ranks * static_cast<double>(list.size()) / dimensions;
  if (messages > most_messages)
    throw UsageError(
        fmt::format("--neighborhood {}: {:.0f} messages, at most {:.0f} are simulated: give fewer "
                    "processes or fewer neighbors",
                    request.neighborhood, messages, most_messages));
  Json lines = Json::array();
  for (const Algorithm a : {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic}) {
    const NeighborSchedule schedule = plan_neighbor_schedule(list, dimensions, a, Pattern::personal);
    lines.push_back(simulated(to_string(a), neighbor_traffic(schedule, list, torus, options.bytes), options));
  }
  return lines;
}

}  // namespace

void report_exchanges(const Communicator& comm, const ScheduleRequest& request, const SimulationOptions& options,
                      const SolverKinds& kinds) {
  std::vector<PatternTraffic> halos;
  if (!request.halo.empty()) {
    RunRequest run;
    run.input = request.halo, run.plan = run.quiet = true, run.plan_ranks = request.ranks;
    halos = halos_of_input(comm.get(), run, kinds);
  }
  on_root(comm, [&] {
    Json lines = Json::array();
    for (const auto& [pattern, traffic] : halos) lines.push_back(simulated(pattern, traffic, options));
    if (halos.empty()) lines = neighborhood_report(request, options);
    Json report;
    if (request.halo.empty())
      report = {{"neighborhood", request.neighborhood}, {"mesh", request.mesh}, {"bytes", options.bytes}};
    else
      report = {{"halo", request.halo}, {"ranks", request.ranks}};
    report["exchanges"] = lines;  // "most": of one rank
    print_report(MPI_COMM_SELF, request.json, report, true);
  });
}

}  // namespace isohalo
