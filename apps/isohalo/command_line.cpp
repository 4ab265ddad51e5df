/// Parses the command line, runs a subcommand on all ranks, ends with one agreed exit code.

#include "apps/isohalo/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>

#include "apps/common/program.hpp"
#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/schedule_command.hpp"
#include "datatypes/printable.hpp"

namespace isohalo {

namespace {

/// The command line, and what it asks for.
class CommandLine {
 public:
  /// `bench`: the program that measures, if there is one beside this.
  CommandLine(const SolverKinds& kinds, const std::string& program, bool bench)
      : app_("Stencil simulations whose bits do not depend on the number of cores", program), kinds_(kinds) {
    app_.require_subcommand(1);
    add_run();
    add_compare();
    add_prove();
    auto* info = app_.add_subcommand("info", "Describe a checkpoint");
    info->add_option("FILE", file_a_, "checkpoint")->required();
    info->add_flag("--numpy", numpy_, "print the lines of Python that load the fields into NumPy arrays");
    info->callback([this] { action_ = [this] { return info_command(MPI_COMM_WORLD, file_a_, numpy_); }; });
    add_verify();
    add_schedule_command(app_, schedule_)->callback([this] {
      action_ = [this] { return schedule_command(MPI_COMM_WORLD, schedule_, kinds_); };
    });
    if (bench) app_.add_subcommand("bench", "Measure on this machine (see isohalo bench --help)");
  }

  int run(int argc, char** argv) {
    request_.command_line.assign(argv, argv + argc);
    return run_program(argc, argv, app_, [this] { return action_(); });
  }

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
    auto* plan = run->add_flag("--plan", request_.plan,
                               "print process grid, messages, memory, file sizes and time, and stop");
    run->add_option("-n", request_.plan_ranks, "ranks of --plan")->check(CLI::Range(1, 1 << 24))->needs(plan);
    request_.watch_signals = true;
    run->callback([this, input] {
      if (!help_input_ && input->count() == 0) throw CLI::RequiredError("INPUT");
      action_ = [this] {
        return help_input_ ? help_input_command(MPI_COMM_WORLD, request_, markdown_, kinds_)
                           : run_command(MPI_COMM_WORLD, request_, kinds_);
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
    prove->callback([this] { action_ = [this] { return prove_command(MPI_COMM_WORLD, prove_); }; });
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
        return live ? verify_live_command(MPI_COMM_WORLD, verify_live_) : verify_command(MPI_COMM_WORLD, file_a_);
      };
    });
  }

  void add_compare() {
    auto* compare = app_.add_subcommand(
        "compare", "Compare two checkpoints, or two digest logs: exit code 0 same, 1 different, 2 an error");
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
    compare->callback([this] { action_ = [this] { return compare_command(MPI_COMM_WORLD, compare_); }; });
  }

  CLI::App app_;
  const SolverKinds& kinds_;
  RunRequest request_;
  CompareRequest compare_;
  ProveRequest prove_;
  VerifyLiveOptions verify_live_;
  std::string file_a_;
  bool numpy_ = false, help_input_ = false, markdown_ = false;
  ScheduleRequest schedule_;
  std::function<ExitCode()> action_;
};

}  // namespace

int run_command_line(int argc, char** argv, const std::string& program, bool bench,
                     const std::function<void(SolverKinds&)>& add) {
  SolverKinds kinds = shipped_solvers();
  try {
    add(kinds);
  } catch (const Error& e) {
    fmt::print(stderr, "{}: error: {}\n", program, printable(e.what()));
    return static_cast<int>(ExitCode::usage);
  }
  return CommandLine(kinds, program, bench).run(argc, argv);
}

}  // namespace isohalo
