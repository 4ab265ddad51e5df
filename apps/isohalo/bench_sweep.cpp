#include "apps/isohalo/commands.hpp"
namespace isohalo {
ExitCode bench_sweep_command(MPI_Comm, const BenchSweepOptions&) { return ExitCode::usage; }
}
