#include "framework/run/run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/help.hpp"
#include "framework/run/plan.hpp"
#include "framework/run/simulation.hpp"

namespace isohalo {

namespace {

/// Read by rank 0 alone and sent to the others, so that all ranks run the same input.
Config read_input_file(const RunRequest& request, const Communicator& comm) {
  const std::string& path = request.input;
  std::string text;
  on_root(comm, [&] {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw UsageError(path + " is a directory, not an input file");
    std::ifstream in(path, std::ios::binary);
    if (!in) throw UsageError("cannot read the input file " + path);
    constexpr std::size_t most = std::size_t{4} << 20;
    text.resize(most + 1);  // no more is read of a file that is none
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > most) throw UsageError(path + " is larger than 4 MiB: no input file");
  });
  comm.broadcast(text, 0);
  return Config(text, path, request.overrides);
}

int planned_ranks(const RunRequest& request, const Communicator& comm) {
  return request.plan_ranks > 0 ? request.plan_ranks : comm.size();
}

}  // namespace

void show_input(MPI_Comm user, const RunRequest& request, const SolverKinds& kinds) {
  const Communicator comm = Communicator::of(user);
  Config config = read_input_file(request, comm);
  const std::string text = help_input(kinds, config, request.input, comm.size());
  if (comm.rank() == 0) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  config.finish();
}

RunResult run_input(MPI_Comm user, const RunRequest& request, const SolverKinds& kinds) {
  const Communicator comm = Communicator::of(user);
  Config config = read_input_file(request, comm);
  return with_dimensions(config, [&](auto d) -> RunResult {
    if (request.plan) {
      const int ranks = planned_ranks(request, comm);
      const auto in = checked_input<d()>(config, kinds, request.input, ranks);
      in.check_files(comm);
      const std::string text = plan_text(in, ranks);
      if (comm.rank() == 0) fmt::print("{}", text);
      return {};
    }
    Simulation<d()> simulation(comm, request, config, kinds);
    if (!request.validate_only) return simulation.run();
    simulation.validate();
    return {};
  });
}

std::vector<PatternTraffic> halos_of_input(MPI_Comm user, const RunRequest& request, const SolverKinds& kinds) {
  const Communicator comm = Communicator::of(user);
  Config config = read_input_file(request, comm);
  return with_dimensions(config, [&](auto d) {
    const int ranks = planned_ranks(request, comm);
    return traffic_by_pattern(checked_input<d()>(config, kinds, request.input, ranks), ranks);
  });
}

}  // namespace isohalo
