#include "tests/fuzz/plan_input.hpp"

#include <mpi.h>

#include "framework/mpi/communicator.hpp"
#include "framework/run/plan.hpp"
#include "stencils/solvers.hpp"

namespace isohalo::fuzz {

void plan_input(const std::string& text, const std::vector<std::string>& overrides, int ranks) {
  static const SolverKinds kinds = shipped_solvers();
  Config config(text, "input.toml", overrides);
  with_dimensions(config, [&](auto d) {
    const auto in = checked_input<d()>(config, kinds, "input.toml", ranks);
    in.check_files(Communicator::of(MPI_COMM_WORLD));
    plan_text(in, ranks);
  });
}

}  // namespace isohalo::fuzz
