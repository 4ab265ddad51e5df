/// The isohalo command: parses the command line, runs a subcommand on all ranks, ends with one agreed exit code.

#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>

#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/ending.hpp"
#include "apps/isohalo/finalize_guard.hpp"
#include "apps/isohalo/schedule_command.hpp"
#include "apps/isohalo/usage.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/run/version.hpp"

namespace isohalo {

namespace {

const MPI_Comm kWorld = MPI_COMM_WORLD;

/// The command line, and what it asks for.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", std::string("isohalo ") + kVersion);
    add_run();
    add_compare();
    add_prove();
    auto* info =
        add(app_, "info", "Describe a checkpoint", [this] { return info_command(kWorld, file_a_, numpy_); });
    info->add_option("FILE", file_a_, "checkpoint")->required();
    info->add_flag("--numpy", numpy_, "print the lines of Python that load the fields into NumPy arrays");
    add_verify();
    does(add_schedule_command(app_, schedule_), [this] { return schedule_command(kWorld, schedule_); });
    add_bench();
  }

  /// Parses; returns the exit code of a usage error or --help. Only rank 0 prints.
  std::optional<ExitCode> parse(int argc, char** argv, bool print) {
    request_.command_line.assign(argv, argv + argc);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& e) {  // --help, --version
      if (print) app_.exit(e);
      return ExitCode::fine;
    } catch (const CLI::ParseError& e) {
      if (print)
        fmt::print(stderr, "isohalo: error: {}\n", printable(usage_error(app_, {argv + 1, argv + argc}, e)));
      return ExitCode::usage;
    }
    return std::nullopt;
  }

  ExitCode run() { return action_(); }

 private:
  using Action = std::function<ExitCode()>;

  void does(CLI::App* command, Action action) {
    command->callback([this, action = std::move(action)] { action_ = action; });
  }
  CLI::App* add(CLI::App& above, const char* name, const char* help, Action action) {
    auto* command = above.add_subcommand(name, help);
    does(command, std::move(action));
    return command;
  }
  static CLI::Option* add_json(CLI::App* command, bool& json) {
    return command->add_flag("--json", json, "print JSON");
  }
  static void add_repeats(CLI::App* command, int& repeats, const char* of) {
    command->add_option("--repeats", repeats, std::string("measurements of each") + of)->check(CLI::Range(1, 1000));
  }

  void add_run() {
    auto* run = app_.add_subcommand("run", "Run a simulation by an input file (TOML)");
    auto* input = run->add_option("INPUT", request_.input, "input file");
    run->add_option(
        "OVERRIDES", request_.overrides,
        "key.path=value, replacing keys of the input: the value is TOML, or else a string; an empty value "
        "(solver.cfl=) removes the key, 'key=\"\"' is the empty string");
    run->add_option("--restart", request_.restart,
                    "continue from FILE, or with 'auto' from the newest good checkpoint")
        ->check([](const std::string& name) { return std::string(name.empty() ? "names no file" : ""); });
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
        return help_input_ ? help_input_command(kWorld, request_, markdown_) : run_command(kWorld, request_);
      };
    });
  }

  void add_prove() {
    auto* prove = add(
        app_, "prove",
        "Run an input file on several numbers of ranks and compare what they leave: exit code 0 same, 1 different",
        [this] { return prove_command(kWorld, prove_); });
    prove->add_option("INPUT", prove_.input, "input file")->required();
    prove->add_option("OVERRIDES", prove_.overrides, "key.path=value, replacing keys of the input");
    prove->add_option("--ranks", prove_.ranks, "numbers of ranks, such as 1,2,3,6")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(1, 1 << 20));
    prove->add_option("--mpiexec", prove_.mpiexec, "the launcher");
    prove->add_option("--directory", prove_.directory, "keep the runs' files there (default: none are kept)");
  }

  void add_verify() {
    auto* verify = app_.add_subcommand("verify",
                                       "Check a checkpoint against its digests; without a file, whether this MPI "
                                       "brings every ghost: exit code 0 good, 1 not");
    auto* file = verify->add_option("FILE", file_a_, "checkpoint");
    verify->add_flag("--json", verify_live_.json, "without a file: print JSON")->excludes(file);
    verify
        ->add_option("--break", verify_live_.broken,
                     "without a file: spoil this check on purpose, to see that it can fail")
        ->excludes(file);
    verify
        ->add_option("--time-limit", verify_live_.time_limit_s,
                     "without a file: seconds until an MPI that loses messages is given up")
        ->check(CLI::Range(1e-3, 1e8))
        ->excludes(file);
    does(verify, [this, file] {
      return file->count() == 0 ? verify_live_command(kWorld, verify_live_) : verify_command(kWorld, file_a_);
    });
  }

  void add_compare() {
    auto* compare =
        add(app_, "compare",
            "Compare two checkpoints, or two digest logs: exit code 0 same, 1 different, 2 not comparable",
            [this] { return compare_command(kWorld, compare_); });
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
    add_json(compare, compare_.json);
  }

  void add_bench() {
    auto* bench = app_.add_subcommand("bench", "Measure on this machine");
    bench->require_subcommand(1);
    auto* sweep = add(*bench, "sweep", "Stencil steps against hand-written loops, halo exchange included",
                      [this] { return bench_sweep_command(kWorld, sweep_); });
    add_json(sweep, sweep_.json);
    add_repeats(sweep, sweep_.repeats, " variant");
    sweep->add_option("--case", sweep_.cases, "only these cases");
    auto* neighborhood =
        add(*bench, "neighborhood", "Isomorphic collectives: set-up and exchange against MPI's graph communicators",
            [this] { return bench_neighborhood_command(kWorld, neighborhood_); });
    add_json(neighborhood, neighborhood_.json);
    neighborhood->add_option("--samples", neighborhood_.samples, "samples of each experiment")
        ->check(CLI::Range(5, 10000));
    neighborhood->add_option("--seconds", neighborhood_.seconds_each, "at most, for each experiment")
        ->check(CLI::Range(0.001, 60.0));
    neighborhood->add_option("--largest", neighborhood_.largest_block, "largest block in bytes")
        ->check(CLI::Range(8, 1 << 26));
    neighborhood->add_option("--order", neighborhood_.order, "rows and columns of the matrix of Fig. 8, per rank")
        ->check(CLI::Range(10, 40000));
    neighborhood->add_option("--plot", neighborhood_.plot_directory, "directory for plots (SVG)");
    add_bench_exchange(*bench);
    add_json(add(*bench, "wait", "Waiting for messages by our progress loop against MPI_Waitall",
                 [this] { return bench_wait_command(kWorld, sweep_.json); }),
             sweep_.json);
    for (auto* files : {add(*bench, "compare", "Comparing two checkpoints, against h5diff",
                            [this] { return bench_compare_command(kWorld, files_); }),
                        add(*bench, "checkpoint", "Checkpoints against MPI_File_write_all and read_all",
                            [this] { return bench_checkpoint_command(kWorld, files_); })}) {
      add_json(files, files_.json);
      add_repeats(files, files_.repeats, " variant");
      files->add_option("--mib", files_.mib, "MiB per file")->check(CLI::Range(1, 1 << 20));
      files->add_option("--directory", files_.directory, "where the files go, for the time being");
    }
    auto* allreduce = add(*bench, "allreduce", "Reproducible reductions against MPI_Allreduce",
                          [this] { return bench_allreduce_command(kWorld, allreduce_); });
    add_json(allreduce, allreduce_.json);
    add_repeats(allreduce, allreduce_.repeats, "");
    allreduce->add_option("--emulate", allreduce_.emulate,
                          "also schedules under an emulated network: latency and send time, like 2ms,0.2ms");
    allreduce->add_flag("--local", allreduce_.local,
                        "also the local pass over 128 MiB per rank, and the set-up of a large plan");
    allreduce->add_flag("--arrays", allreduce_.arrays, "also arrays of 460 to 21,410,970 numbers");
    add_bench_multicast(*bench);
  }

  void add_bench_multicast(CLI::App& bench) {
    auto* multicast =
        add(bench, "multicast", "One rank sends to k others: the parameters of the message cost model",
            [this] { return bench_multicast_command(kWorld, multicast_); });
    add_json(multicast, multicast_.json);
    multicast->add_option("--samples", multicast_.samples, "samples of each case")->check(CLI::Range(2, 1000000));
    multicast->add_option("--seconds", multicast_.seconds, "begin no further round of samples after this time")
        ->check(CLI::Range(0.0, 3600.0));
    multicast->add_option("--emulate", multicast_.emulate,
                          "under an emulated network: latency and send time, like 20ms,2ms");
    multicast->add_option("--plot", multicast_.plot_directory, "directory for plots (SVG)");
  }

  void add_bench_exchange(CLI::App& bench) {
    auto* exchange = add(bench, "exchange", "Halo exchange by every transport against datatypes over MPI",
                         [this] { return bench_exchange_command(kWorld, exchange_); });
    add_json(exchange, exchange_.json);
    add_repeats(exchange, exchange_.repeats, " way");
    exchange->add_option("--size", exchange_.size, "cells per dimension of the cubes")->check(CLI::Range(16, 2048));
    exchange->add_option("--case", exchange_.cases, "only these cases");
    add_json(add(bench, "datatypes", "Types of halo regions against lists of blocks",
                 [this] { return bench_datatypes_command(kWorld, exchange_.json); }),
             exchange_.json);
  }

  CLI::App app_{"Stencil simulations whose bits do not depend on the number of cores", "isohalo"};
  RunRequest request_;
  CompareRequest compare_;
  ProveRequest prove_;
  BenchSweepOptions sweep_;
  BenchFileOptions files_;
  VerifyLiveOptions verify_live_;
  std::string file_a_;
  bool numpy_ = false, help_input_ = false, markdown_ = false;
  BenchNeighborhoodOptions neighborhood_;
  BenchExchangeOptions exchange_;
  BenchAllreduceOptions allreduce_;
  BenchMulticastOptions multicast_;
  ScheduleRequest schedule_;
  Action action_;
};

}  // namespace

}  // namespace isohalo

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write, not the end of the process
  isohalo::warn_of_little_shared_memory();
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  isohalo::guard_finalize();
  isohalo::h5_be_quiet();
  isohalo::CommandLine line;
  auto code = line.parse(argc, argv, rank == 0);
  if (!code)
    code = isohalo::end_together(MPI_COMM_WORLD, [&] {
      isohalo::refuse_foreign_launcher(size);
      const Kokkos::ScopeGuard kokkos;
      return line.run();
    });
  MPI_Finalize();
  return static_cast<int>(*code);
}
