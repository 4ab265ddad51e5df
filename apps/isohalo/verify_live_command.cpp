/// `isohalo verify` without a file: does this MPI bring every ghost?

#include <fmt/format.h>

#include <chrono>

#include "apps/common/report.hpp"
#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/live_check.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

void print(const LiveReport& report, const Communicator& comm, double seconds) {
  fmt::print("{}\n{} ranks, {} on the node of rank 0\n\n", mpi_library_name(), comm.size(), comm.ranks_on_node());
  fmt::print("{:<12}{:<24}{:>7}{:>14}{:>12}\n", "", "", "cases", "checked", "wrong");
  for (const auto& r : report.rows())
    fmt::print("{:<12}{:<24}{:>7}{:>14}{:>12}\n", r.group, r.name, r.cases, r.checked, r.wrong);
  fmt::print("\n");
  for (const auto& r : report.rows())
    if (r.wrong) fmt::print("{} {}: {} wrong values, first: {}\n", r.group, r.name, r.wrong, r.first);
  fmt::print("{} ({:.1f} s)\n", report.good() ? "good: every ghost of every transport is right" : "not good",
             seconds);
}

void print_json(const LiveReport& report, const Communicator& comm, double seconds) {
  Json j{{"good", report.good()},
         {"mpi", mpi_library_name()},
         {"machine", machine_text()},
         {"ranks", comm.size()},
         {"ranks_on_node", comm.ranks_on_node()},
         {"seconds", seconds}};
  for (const auto& r : report.rows()) {
    Json row{{"group", r.group}, {"name", r.name}, {"cases", r.cases}, {"checked", r.checked}, {"wrong", r.wrong}};
    if (r.wrong) row["first"] = r.first;
    j["checks"].push_back(row);
  }
  fmt::print("{}", json_text(j));
}

}  // namespace

ExitCode verify_live_command(MPI_Comm user, const VerifyLiveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Communicator comm = Communicator::of(user);
  const std::jthread deadline = watch_deadline(comm, options.time_limit_s);
  LiveReport report(options.broken);
  check_mpi_features(user, report);  // first: they explain what fails later
  check_transports(user, report);
  check_neighborhoods(user, report);
  check_reductions(user, report);
  report.gather(comm);
  if (!options.broken.empty() && !report.has(options.broken)) {
    std::string names;
    for (const auto& r : report.rows()) names += (names.empty() ? "" : ", ") + r.name;
    throw UsageError("--break " + options.broken + ": there is no such check; there are " + names);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (comm.rank() == 0) options.json ? print_json(report, comm, seconds) : print(report, comm, seconds);
  return report.good() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
