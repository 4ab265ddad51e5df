#include "framework/run/run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/help.hpp"
#include "framework/run/simulation.hpp"

namespace isohalo {

namespace {

/// Read by rank 0 alone and sent to the others, so that all ranks run the same input.
std::string read_input_file(const std::string& path, const Communicator& comm) {
  std::string text;
  agreed(comm, [&] {
    if (comm.rank() != 0) return;
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
  return text;
}

template <int D>
RunResult run_dimensions(const Communicator& comm, const RunRequest& request, Config& config,
                         const SolverKinds& kinds) {
  Simulation<D> simulation(comm, request, config, kinds);
  if (request.plan) {
    const std::string text = simulation.plan();
    if (comm.rank() == 0) fmt::print("{}", text);
    return {};
  }
  if (request.validate_only) {
    simulation.validate();
    return {};
  }
  return simulation.run();
}

}  // namespace

void show_input(MPI_Comm user, const RunRequest& request, const SolverKinds& kinds) {
  const Communicator comm = Communicator::of(user);
  Config config(read_input_file(request.input, comm), request.input, request.overrides);
  const std::string text = help_input(kinds, config, request.input, comm.size());
  if (comm.rank() == 0) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  config.finish();
}

/// Calls f with the dimensions of the input as a constant.
template <class F>
auto with_dimensions(Config& config, const F& f) {
  switch (read_dimensions(config)) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    default:
      return f(std::integral_constant<int, 4>());
  }
}

RunResult run_input(MPI_Comm user, const RunRequest& request, const SolverKinds& kinds) {
  const Communicator comm = Communicator::of(user);
  Config config(read_input_file(request.input, comm), request.input, request.overrides);
  return with_dimensions(config, [&](auto d) { return run_dimensions<d()>(comm, request, config, kinds); });
}

std::vector<HaloTraffic> halos_of_input(MPI_Comm user, const RunRequest& request, const SolverKinds& kinds) {
  const Communicator comm = Communicator::of(user);
  Config config(read_input_file(request.input, comm), request.input, request.overrides);
  return with_dimensions(config, [&](auto d) { return Simulation<d()>(comm, request, config, kinds).halos(); });
}

}  // namespace isohalo
