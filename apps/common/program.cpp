#include "apps/common/program.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "apps/common/ending.hpp"
#include "apps/common/environment.hpp"
#include "apps/common/finalize_guard.hpp"
#include "apps/common/usage.hpp"
#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/version.hpp"

namespace isohalo {

namespace {

/// On a usage error or --help: the exit code.
std::optional<ExitCode> parse(CLI::App& app, int argc, char** argv, bool print) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& e) {  // --help, --version
    if (print) app.exit(e);
    return ExitCode::fine;
  } catch (const CLI::ParseError& e) {
    if (print) fmt::print(stderr, "isohalo: error: {}\n", printable(usage_error(app, {argv + 1, argv + argc}, e)));
    return ExitCode::usage;
  }
}

}  // namespace

int run_program(int argc, char** argv, CLI::App& app, const std::function<ExitCode()>& action) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write, not the end of the process
  warn_of_little_shared_memory();
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  guard_finalize();
  h5_be_quiet();
  app.set_version_flag("--version", std::string("isohalo ") + kVersion);
  std::optional<ExitCode> code = parse(app, argc, argv, rank == 0);
  if (!code)
    code = end_together(MPI_COMM_WORLD, [&] {
      refuse_foreign_launcher(size);
      choose_threads();
      checks_communication();  // throws for another word of ISOHALO_CHECK, which else only some commands ask for
      const Kokkos::ScopeGuard kokkos;
      if (host_threads() > 1 && threads < MPI_THREAD_FUNNELED)
        throw UsageError("this MPI does not allow ranks of several threads: set OMP_NUM_THREADS=1");
      return action();
    });
  MPI_Finalize();
  return static_cast<int>(*code);
}

}  // namespace isohalo
