#include "tests/fuzz/plan_input.hpp"

#include <mpi.h>

#include "framework/mpi/communicator.hpp"
#include "framework/run/simulation.hpp"
#include "stencils/solvers.hpp"

namespace isohalo::fuzz {

namespace {

template <int D>
void plan(Config& config, int ranks) {
  RunRequest request;
  request.input = "input.toml";
  request.plan = true;
  request.plan_ranks = ranks;
  request.quiet = true;
  static const SolverKinds kinds = shipped_solvers();
  Simulation<D>(Communicator::of(MPI_COMM_WORLD), request, config, kinds).plan();
}

}  // namespace

void plan_input(const std::string& text, const std::vector<std::string>& overrides, int ranks) {
  Config config(text, "input.toml", overrides);
  switch (read_dimensions(config)) {
    case 1:
      return plan<1>(config, ranks);
    case 2:
      return plan<2>(config, ranks);
    case 3:
      return plan<3>(config, ranks);
    default:
      return plan<4>(config, ranks);
  }
}

}  // namespace isohalo::fuzz
