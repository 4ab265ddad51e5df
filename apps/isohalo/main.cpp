/// The isohalo command: parses the command line, runs a subcommand on all ranks, ends with one agreed exit code.

#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>
#include <csignal>
#include <cstdio>
#include <functional>

#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/ending.hpp"
#include "apps/isohalo/finalize_guard.hpp"
#include "apps/isohalo/schedule_command.hpp"
#include "apps/isohalo/usage.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/mpi/communicator.hpp"
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
    add_compare();
    add_prove();
    auto* info = app_.add_subcommand("info", "Describe a checkpoint");
    info->add_option("FILE", file_a_, "checkpoint")->required();
    info->add_flag("--numpy", numpy_, "print the lines of Python that load the fields into NumPy arrays");
    info->callback([this] { action_ = [this] { return isohalo::info_command(MPI_COMM_WORLD, file_a_, numpy_); }; });
    add_verify();
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
      if (print)
        fmt::print(stderr, "isohalo: error: {}\n",
                   isohalo::printable(isohalo::usage_error(app_, {argv + 1, argv + argc}, e)));
      code = ExitCode::usage;
      return false;
    }
    return true;
  }

  ExitCode run() { return action_(); }

 private:
  void add_run() {
    auto* run = app_.add_subcommand("run", "Run a simulation by an input file (TOML)");
    auto* input = run->add_option("INPUT", request_.input, "input file");
    run->add_option(
        "OVERRIDES", request_.overrides,
        "key.path=value, replacing keys of the input: the value is TOML, or else a string; an empty value "
        "(solver.cfl=) removes the key, 'key=\"\"' is the empty string");
    auto* restart = run->add_option("--restart", request_.restart,
                                    "continue from FILE, or with 'auto' from the newest good checkpoint");
    restart->check(
        [](const std::string& name) { return name.empty() ? std::string("names no file") : std::string(); });
    run->add_flag("--overwrite", request_.overwrite, "replace the checkpoints in output.directory");
    run->add_flag("--validate", request_.validate_only,
                  "check all that a run would refuse before its first step, but for the "
                  "values of fields, and stop");
    auto* help = run->add_flag("--help-input", help_input_,
                               "list every key of an input file; with INPUT, its keys and the values in force");
    run->add_flag("--markdown", markdown_, "--help-input without INPUT as Markdown")->needs(help)->excludes(input);
    auto* plan =
        run->add_flag("--plan", request_.plan, "print process grid, messages, memory and file sizes and stop");
    run->add_option("-n", request_.plan_ranks, "ranks of --plan")->check(CLI::Range(1, 1 << 24))->needs(plan);
    request_.watch_signals = true;
    run->callback([this, input] {
      if (!help_input_ && input->count() == 0) throw CLI::RequiredError("INPUT");
      action_ = [this] {
        return help_input_ ? isohalo::help_input_command(MPI_COMM_WORLD, request_, markdown_)
                           : isohalo::run_command(MPI_COMM_WORLD, request_);
      };
    });
  }

  void add_prove() {
    auto* prove = app_.add_subcommand(
        "prove",
        "Run an input file on several numbers of ranks and compare what they leave: exit code 0 same, 1 different");
    prove->add_option("INPUT", prove_.input, "input file")->required();
    prove->add_option("OVERRIDES", prove_.overrides, "key.path=value, replacing keys of the input");
    prove->add_option("--ranks", prove_.ranks, "numbers of ranks, such as 1,2,3,6")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(1, 1 << 20));
    prove->add_option("--mpiexec", prove_.mpiexec, "the launcher");
    prove->add_option("--directory", prove_.directory, "keep the runs' files there (default: none are kept)");
    prove->callback([this] { action_ = [this] { return isohalo::prove_command(MPI_COMM_WORLD, prove_); }; });
  }

  void add_verify() {
    auto* verify = app_.add_subcommand("verify",
                                       "Check a checkpoint against its digests; without a file, whether this MPI "
                                       "brings every ghost: exit code 0 good, 1 not");
    auto* file = verify->add_option("FILE", file_a_, "checkpoint");
    auto* json = verify->add_flag("--json", verify_live_.json, "without a file: print JSON");
    auto* broken = verify->add_option("--break", verify_live_.broken,
                                      "without a file: spoil this check on purpose, to see that it can fail");
    auto* limit = verify
                      ->add_option("--time-limit", verify_live_.time_limit_s,
                                   "without a file: seconds until an MPI that loses messages is given up")
                      ->check(CLI::Range(1e-3, 1e8));
    for (auto* option : {static_cast<CLI::Option*>(json), broken, limit}) option->excludes(file);
    verify->callback([this, file] {
      const bool live = file->count() == 0;
      action_ = [this, live] {
        return live ? isohalo::verify_live_command(MPI_COMM_WORLD, verify_live_)
                    : isohalo::verify_command(MPI_COMM_WORLD, file_a_);
      };
    });
  }

  void add_compare() {
    auto* compare = app_.add_subcommand(
        "compare", "Compare two checkpoints, or two digest logs: exit code 0 same, 1 different, 2 not comparable");
    compare->add_option("A", compare_.a, "checkpoint (or digests.txt)")->required();
    compare->add_option("B", compare_.b, "checkpoint (or digests.txt)")->required();
    const auto limit = [&](const char* name, std::vector<std::string>& values, const char* help) {
      compare->add_option(name, values, help)->allow_extra_args(false)->type_name("[FIELD=]LIMIT");
    };
    limit("--abs", compare_.abs, "allow |b - a| <= LIMIT");
    limit("--rel", compare_.rel, "allow |b - a| <= LIMIT max(|a|, |b|)");
    limit("--ulp", compare_.ulp, "allow LIMIT steps of the field's type");
    compare->add_option("--ignore", compare_.ignore, "metadata that need not match, such as config,time,residual")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("NAME,..");
    compare->add_flag("--read-data", compare_.read_data, "read large fields even when their digests agree");
    compare->add_flag("--json", compare_.json, "print JSON");
    compare->callback([this] { action_ = [this] { return isohalo::compare_command(MPI_COMM_WORLD, compare_); }; });
  }

  void add_file_options(CLI::App* bench) {
    bench->add_flag("--json", files_.json, "print JSON");
    bench->add_option("--repeats", files_.repeats, "measurements of each variant")->check(CLI::Range(1, 1000));
    bench->add_option("--mib", files_.mib, "MiB per file")->check(CLI::Range(1, 1 << 20));
    bench->add_option("--directory", files_.directory, "where the files go, for the time being");
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
    neighborhood->add_option("--order", neighborhood_.order, "rows and columns of the matrix of Fig. 8, per rank")
        ->check(CLI::Range(10, 40000));
    neighborhood->add_option("--plot", neighborhood_.plot_directory, "directory for plots (SVG)");
    neighborhood->callback([this] {
      action_ = [this] { return isohalo::bench_neighborhood_command(MPI_COMM_WORLD, neighborhood_); };
    });
    add_bench_exchange(*bench);
    auto* wait = bench->add_subcommand("wait", "Waiting for messages by our progress loop against MPI_Waitall");
    wait->add_flag("--json", sweep_.json, "print JSON");
    wait->callback(
        [this] { action_ = [this] { return isohalo::bench_wait_command(MPI_COMM_WORLD, sweep_.json); }; });
    auto* compare = bench->add_subcommand("compare", "Comparing two checkpoints, against h5diff");
    add_file_options(compare);
    compare->callback(
        [this] { action_ = [this] { return isohalo::bench_compare_command(MPI_COMM_WORLD, files_); }; });
    auto* checkpoint = bench->add_subcommand("checkpoint", "Checkpoints against MPI_File_write_all and read_all");
    add_file_options(checkpoint);
    checkpoint->callback(
        [this] { action_ = [this] { return isohalo::bench_checkpoint_command(MPI_COMM_WORLD, files_); }; });
    auto* allreduce = bench->add_subcommand("allreduce", "Reproducible reductions against MPI_Allreduce");
    allreduce->add_flag("--json", allreduce_.json, "print JSON");
    allreduce->add_option("--repeats", allreduce_.repeats, "measurements of each")->check(CLI::Range(1, 1000));
    allreduce->add_option("--emulate", allreduce_.emulate,
                          "also schedules under an emulated network: latency and send time, like 2ms,0.2ms");
    allreduce->add_flag("--local", allreduce_.local,
                        "also the local pass over 128 MiB per rank, and the set-up of a large plan");
    allreduce->add_flag("--arrays", allreduce_.arrays, "also arrays of 460 to 21,410,970 numbers");
    allreduce->callback(
        [this] { action_ = [this] { return isohalo::bench_allreduce_command(MPI_COMM_WORLD, allreduce_); }; });
    add_bench_multicast(*bench);
    sweep->callback([this] { action_ = [this] { return isohalo::bench_sweep_command(MPI_COMM_WORLD, sweep_); }; });
  }

  void add_bench_multicast(CLI::App& bench) {
    auto* multicast =
        bench.add_subcommand("multicast", "One rank sends to k others: the parameters of the message cost model");
    multicast->add_flag("--json", multicast_.json, "print JSON");
    multicast->add_option("--samples", multicast_.samples, "samples of each case")->check(CLI::Range(2, 1000000));
    multicast->add_option("--seconds", multicast_.seconds, "begin no further round of samples after this time")
        ->check(CLI::Range(0.0, 3600.0));
    multicast->add_option("--emulate", multicast_.emulate,
                          "under an emulated network: latency and send time, like 20ms,2ms");
    multicast->add_option("--plot", multicast_.plot_directory, "directory for plots (SVG)");
    multicast->callback(
        [this] { action_ = [this] { return isohalo::bench_multicast_command(MPI_COMM_WORLD, multicast_); }; });
  }

  void add_bench_exchange(CLI::App& bench) {
    auto* exchange =
        bench.add_subcommand("exchange", "Halo exchange by every transport against datatypes over MPI");
    exchange->add_flag("--json", exchange_.json, "print JSON");
    exchange->add_option("--repeats", exchange_.repeats, "measurements of each way")->check(CLI::Range(1, 1000));
    exchange->add_option("--size", exchange_.size, "cells per dimension of the cubes")->check(CLI::Range(16, 2048));
    exchange->add_option("--case", exchange_.cases, "only these cases");
    exchange->callback(
        [this] { action_ = [this] { return isohalo::bench_exchange_command(MPI_COMM_WORLD, exchange_); }; });
    auto* types = bench.add_subcommand("datatypes", "Types of halo regions against lists of blocks");
    types->add_flag("--json", exchange_.json, "print JSON");
    types->callback(
        [this] { action_ = [this] { return isohalo::bench_datatypes_command(MPI_COMM_WORLD, exchange_.json); }; });
  }

  CLI::App app_{"Stencil simulations whose bits do not depend on the number of cores", "isohalo"};
  isohalo::RunRequest request_;
  isohalo::CompareRequest compare_;
  isohalo::ProveRequest prove_;
  isohalo::BenchSweepOptions sweep_;
  isohalo::BenchFileOptions files_;
  isohalo::VerifyLiveOptions verify_live_;
  std::string file_a_;
  bool numpy_ = false, help_input_ = false, markdown_ = false;
  isohalo::BenchNeighborhoodOptions neighborhood_;
  isohalo::BenchExchangeOptions exchange_;
  isohalo::BenchAllreduceOptions allreduce_;
  isohalo::BenchMulticastOptions multicast_;
  isohalo::ScheduleRequest schedule_;
  std::function<ExitCode()> action_;
};

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write, not the end of the process
  isohalo::warn_of_little_shared_memory();
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  isohalo::guard_finalize();
  isohalo::h5_be_quiet();
  CommandLine line;
  ExitCode code = ExitCode::fine;
  if (line.parse(argc, argv, rank == 0, code)) {
    code = isohalo::end_together(MPI_COMM_WORLD, [&] {
      isohalo::refuse_foreign_launcher(size);
      const Kokkos::ScopeGuard kokkos;
      return line.run();
    });
  }
  MPI_Finalize();
  return static_cast<int>(code);
}
