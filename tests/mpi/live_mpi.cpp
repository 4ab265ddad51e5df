/// The checks of `isohalo verify` without a file, for builds of the components that need MPI alone: with any MPI.

#include <fmt/format.h>

#include "apps/common/ending.hpp"
#include "apps/isohalo/live_check.hpp"

namespace isohalo {

static ExitCode verify() {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  const std::jthread deadline = watch_deadline(comm, 800);
  LiveReport report("");
  for (const auto& check : {check_mpi_features, check_transports, check_neighborhoods, check_reductions})
    check(MPI_COMM_WORLD, report);
  report.gather(comm);
  if (comm.rank() != 0) return report.good() ? ExitCode::fine : ExitCode::different;
  std::int64_t checked = 0;
  for (const auto& r : report.rows()) {
    checked += r.checked;
    if (r.wrong) fmt::print("{} {}: {} wrong values, first: {}\n", r.group, r.name, r.wrong, r.first);
  }
  fmt::print("{}: {} checks, {} values\n", report.good() ? "good" : "not good", report.rows().size(), checked);
  return report.good() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const isohalo::ExitCode code = isohalo::end_together(MPI_COMM_WORLD, isohalo::verify);
  MPI_Finalize();
  return static_cast<int>(code);
}
