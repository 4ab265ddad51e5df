/// The isohalo command: parses the command line, runs a subcommand on all ranks, ends with one agreed exit code.

#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <functional>

#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/schedule_command.hpp"
#include "framework/run/version.hpp"

namespace {

using isohalo::ExitCode;

/// The command line, and what it asks for.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", std::string("isohalo ") + isohalo::kVersion);
    add_run();
    auto* compare = app_.add_subcommand(
        "compare", "Compare two checkpoints bit by bit: exit code 0 same, 1 different, 2 not comparable");
    compare->add_option("A", file_a_, "checkpoint")->required();
    compare->add_option("B", file_b_, "checkpoint")->required();
    compare->callback(
        [this] { action_ = [this] { return isohalo::compare_command(MPI_COMM_WORLD, file_a_, file_b_); }; });
    auto* info = app_.add_subcommand("info", "Describe a checkpoint");
    info->add_option("FILE", file_a_, "checkpoint")->required();
    info->callback([this] { action_ = [this] { return isohalo::info_command(MPI_COMM_WORLD, file_a_); }; });
    isohalo::add_schedule_command(app_, schedule_)->callback([this] {
      action_ = [this] { return isohalo::schedule_command(MPI_COMM_WORLD, schedule_); };
    });
    add_bench();
  }

  /// Parses; on a usage error or --help sets `code` and returns false. Only rank 0 prints.
  bool parse(int argc, char** argv, bool print, ExitCode& code) {
    request_.command_line.assign(argv, argv + argc);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& e) {  // --help, --version
      if (print) app_.exit(e);
      code = ExitCode::fine;
      return false;
    } catch (const CLI::ParseError& e) {
      if (print) fmt::print(stderr, "isohalo: error: {} (see isohalo --help)\n", e.what());
      code = ExitCode::usage;
      return false;
    }
    return true;
  }

  ExitCode run() { return action_(); }

 private:
  void add_run() {
    auto* run = app_.add_subcommand("run", "Run a simulation from a TOML input");
    run->add_option("DECK", request_.deck, "input file")->required();
    run->add_option("OVERRIDES", request_.overrides, "key.path=value, replacing keys of the input");
    run->add_option("--restart", request_.restart,
                    "continue from FILE, or with 'auto' from the newest good checkpoint");
    run->add_flag("--overwrite", request_.overwrite, "replace the checkpoints in output.directory");
    run->add_flag("--validate", request_.validate_only, "check the input and stop");
    run->callback([this] { action_ = [this] { return isohalo::run_command(MPI_COMM_WORLD, request_); }; });
  }

  void add_bench() {
    auto* bench = app_.add_subcommand("bench", "Measure on this machine");
    bench->require_subcommand(1);
    auto* sweep =
        bench->add_subcommand("sweep", "Stencil steps against hand-written loops, halo exchange included");
    sweep->add_flag("--json", sweep_.json, "print JSON");
    sweep->add_option("--repeats", sweep_.repeats, "measurements of each variant")->check(CLI::Range(1, 1000));
    sweep->add_option("--case", sweep_.cases, "only these cases");
    auto* neighborhood = bench->add_subcommand(
        "neighborhood", "Isomorphic collectives: set-up and exchange against MPI's graph communicators");
    neighborhood->add_flag("--json", neighborhood_.json, "print JSON");
    neighborhood->add_option("--samples", neighborhood_.samples, "samples of each experiment")
        ->check(CLI::Range(5, 10000));
    neighborhood->add_option("--seconds", neighborhood_.seconds_each, "at most, for each experiment")
        ->check(CLI::Range(0.001, 60.0));
    neighborhood->add_option("--largest", neighborhood_.largest_block, "largest block in bytes")
        ->check(CLI::Range(8, 1 << 26));
    neighborhood->add_option("--plot", neighborhood_.plot_directory, "directory for plots (SVG)");
    neighborhood->callback([this] {
      action_ = [this] { return isohalo::bench_neighborhood_command(MPI_COMM_WORLD, neighborhood_); };
    });
    auto* wait = bench->add_subcommand("wait", "Waiting for messages by our progress loop against MPI_Waitall");
    wait->add_flag("--json", sweep_.json, "print JSON");
    wait->callback(
        [this] { action_ = [this] { return isohalo::bench_wait_command(MPI_COMM_WORLD, sweep_.json); }; });
    sweep->callback([this] { action_ = [this] { return isohalo::bench_sweep_command(MPI_COMM_WORLD, sweep_); }; });
  }

  CLI::App app_{"Stencil simulations whose bits do not depend on the number of cores", "isohalo"};
  isohalo::RunRequest request_;
  isohalo::BenchSweepOptions sweep_;
  isohalo::ScheduleRequest schedule_;
  isohalo::BenchNeighborhoodOptions neighborhood_;
  std::string file_a_, file_b_;
  std::function<ExitCode()> action_;
};

/// Runs the command. Errors that are the same on all ranks are printed by rank 0; an MPI failure of this rank alone
/// is printed by it and ends the job.
ExitCode guarded(int rank, const std::function<ExitCode()>& action) {
  try {
    return action();
  } catch (const isohalo::MpiError& e) {
    fmt::print(stderr, "isohalo: error: {}\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitCode::failure));
  } catch (const isohalo::Error& e) {
    if (rank == 0) fmt::print(stderr, "isohalo: error: {}\n", e.what());
    return e.code();
  } catch (const std::exception& e) {
    fmt::print(stderr, "isohalo: error: rank {}: {}\n", rank, e.what());
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitCode::failure));
  }
  return ExitCode::failure;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CommandLine line;
  ExitCode code = ExitCode::fine;
  if (line.parse(argc, argv, rank == 0, code)) {
    code = guarded(rank, [&] {
      isohalo::refuse_foreign_launcher(size);
      int no_arguments = 0;
      Kokkos::initialize(no_arguments, nullptr);
      const ExitCode c = guarded(rank, [&] { return line.run(); });
      Kokkos::finalize();
      return c;
    });
  }
  MPI_Finalize();
  return static_cast<int>(code);
}
