/// isohalo-bench: measures on this machine. `isohalo bench ..` starts it.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "apps/bench/benchmarks.hpp"
#include "apps/common/program.hpp"

namespace {

using namespace isohalo;

/// The command line, and what it asks for.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    add_steps();
    add_scaling();
    auto [cg, of_cg] = add("cg", "Conjugate gradients against hand-written ones with sums in any order", bench_cg);
    size(cg, of_cg.size, "cells per dimension (default: far more than caches hold)");
    add_neighborhood();
    auto [exchange, of_exchange] =
        add("exchange", "Halo exchange by every transport against datatypes over MPI", bench_exchange);
    exchange->add_option("--size", of_exchange.size, "cells per dimension of the cubes")
        ->check(CLI::Range(16, 2048));
    cases(exchange, of_exchange.cases);
    add("datatypes", "Types of halo regions against lists of blocks", bench_datatypes);
    add("wait", "Waiting for messages by our progress loop against MPI_Waitall", bench_wait);
    add_collectives();
    add_workloads();
    add_files("compare", "Comparing two checkpoints, against h5diff", bench_compare);
    add_files("checkpoint", "Checkpoints against MPI_File_write_at_all and read_at_all", bench_checkpoint);
    add_allreduce();
    add_multicast();
  }

  int run(int argc, char** argv) {
    return run_program(argc, argv, app_, [this] { return action_(); });
  }

 private:
  /// A command and what it is asked for: --json and, where measurements are repeated, --repeats; others are to be
  /// added.
  template <class Options>
  std::pair<CLI::App*, Options&> add(const std::string& name, const std::string& text,
                                     ExitCode (*bench)(MPI_Comm, const Options&)) {
    auto* sub = app_.add_subcommand(name, text);
    const auto options = std::make_shared<Options>();
    sub->add_flag("--json", options->json, "print JSON");
    if constexpr (requires { options->repeats; })
      sub->add_option("--repeats", options->repeats, "measurements of each variant")->check(CLI::Range(1, 1000));
    sub->callback(
        [this, options, bench] { action_ = [options, bench] { return bench(MPI_COMM_WORLD, *options); }; });
    return {sub, *options};
  }
  static void cases(CLI::App* sub, std::vector<std::string>& names) {
    sub->add_option("--case", names, "only these cases");
  }
  static void size(CLI::App* sub, std::int64_t& cells, const std::string& text) {
    sub->add_option("--size", cells, text)->check(CLI::Range(16, 1 << 20));
  }
  static void depths(CLI::App* sub, std::set<int>& list, const std::string& text) {
    sub->add_option("--depth", list, text)->check(CLI::Range(1, 1000))->delimiter(',');
  }
  static CLI::Option* plots(CLI::App* sub, std::string& directory, const std::string& what = "") {
    return sub->add_option("--plot", directory, "directory for plots (SVG)" + what);
  }

  void add_steps() {
    auto [sweep, of_sweep] = add(
        "sweep", "Steps of every solver against hand-written loops and against the rate of a copy", bench_sweep);
    cases(sweep, of_sweep.cases);
    sweep
        ->add_option("--space", of_sweep.space,
                     "host, or device: solvers that have such a path, against a copy there")
        ->check(CLI::IsMember({"host", "device"}));
    size(sweep, of_sweep.size, "cells per dimension (default: far more than caches hold)");
    auto [temporal, of_temporal] =
        add("temporal", "Several steps per exchange, in tiles that stay in cache, against hand-written loops",
            bench_temporal);
    cases(temporal, of_temporal.cases);
    size(temporal, of_temporal.size, "cells per dimension");
    depths(temporal, of_temporal.depths, "steps per exchange");
    temporal
        ->add_option("--tile", of_temporal.tile,
                     "extents of the tiles, of cases with as many dimensions (default: by the size of the cache)")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
        ->delimiter(',');
    auto [depth, of_depth] = add("depth", "halo_depth = \"auto\" against every depth that is forced", bench_depth);
    cases(depth, of_depth.cases);
    size(depth, of_depth.size, "cells per dimension (default: in caches and beyond)");
    depths(depth, of_depth.depths, "steps per exchange that are forced");
  }

  void add_scaling() {
    auto [sub, o] =
        add("scaling", "Strong and weak scaling, a model fitted to it, and what that says of 10^6 ranks",
            bench_scaling);
    sub->add_option("--seconds", o.seconds_each, "of each measurement, about")->check(CLI::Range(0.0001, 60.0));
    sub->add_option("--ranks", o.ranks, "of the launch, the first so many (default: 1, 2, 4 .. and all)")
        ->check(CLI::Range(1, 1 << 24))
        ->delimiter(',');
    const CLI::Range extent(std::int64_t{4}, std::int64_t{1} << 16);
    sub->add_option("--block", o.blocks, "weak scaling: cells of a rank per dimension")
        ->check(extent)
        ->delimiter(',');
    sub->add_option("--grid", o.grids, "strong scaling: cells of the grid per dimension")
        ->check(extent)
        ->delimiter(',');
    sub->add_option("--with", o.with, "points of earlier launches, on other ranks or threads: files of --json");
    sub->add_option("--residual-every", o.residual_every, "extrapolated: steps between residuals")
        ->check(CLI::Range(1, 1000000));
    sub->add_option("--weak-block", o.weak_block, "extrapolated: cells of a rank per dimension")->check(extent);
    sub->add_option("--strong-grid", o.strong_grid, "extrapolated: cells of the grid per dimension")->check(extent);
    sub->add_option("--latency", o.latency_us, "extrapolated: microseconds of a message, instead of those measured")
        ->check(CLI::Range(0.001, 1e6));
    sub->add_option("--bandwidth", o.gb_per_s, "extrapolated: GB/s of a rank's messages, instead of those measured")
        ->check(CLI::Range(0.001, 1e6));
    plots(sub, o.plot_directory);
  }

  void add_collectives() {
    auto [sub, o] =
        add("collectives", "Blocking collectives through shared memory against MPI's", bench_collectives);
    sub->add_option("--largest", o.largest, "largest message in bytes; algorithms of --model take 32 KiB at most")
        ->check(CLI::Range(8, 1 << 28));
    auto* model = sub->add_flag("--model", o.model, "instead: each algorithm, as predicted and as measured");
    sub->add_option("--hierarchy", o.hierarchy,
                    "groups of ranks, such as 2x4 (default: caches and sockets); with --model of other "
                    "ranks than there are: a machine that is not here, simulated");
    plots(sub, o.plot_directory, " of --model")->needs(model);
  }

  void add_neighborhood() {
    auto [sub, o] =
        add("neighborhood", "Isomorphic collectives: set-up and exchange against MPI's graph communicators",
            bench_neighborhood);
    sub->add_option("--samples", o.samples, "samples of each experiment")->check(CLI::Range(5, 10000));
    sub->add_option("--seconds", o.seconds_each, "at most, for each experiment")->check(CLI::Range(0.001, 60.0));
    sub->add_option("--largest", o.largest_block, "largest block in bytes")->check(CLI::Range(8, 1 << 26));
    sub->add_option("--order", o.order, "rows and columns of the matrix of Fig. 8, per rank")
        ->check(CLI::Range(10, 40000));
    plots(sub, o.plot_directory);
  }

  void add_files(const std::string& name, const std::string& text,
                 ExitCode (*bench)(MPI_Comm, const BenchFileOptions&)) {
    auto [sub, o] = add(name, text, bench);
    sub->add_option("--mib", o.mib, "MiB per file")->check(CLI::Range(1, 1 << 20));
    sub->add_option("--directory", o.directory, "where the files go, for the time being");
  }

  void add_workloads() {
    auto [sub, o] = add("workloads", "Programs that spend their time in collectives, with MPI's and with ours",
                        bench_workloads);
    sub->add_option("--case", o.cases, "only these: matvec, barnes-hut, openmp-reduce");
    sub->add_option("--rows", o.rows, "of the matrix")->check(CLI::Range(1, 1 << 28));
    sub->add_option("--columns", o.columns, "of the matrix")->check(CLI::Range(1, 1 << 20));
    sub->add_option("--iterations", o.iterations, "products of the matrix and a vector")
        ->check(CLI::Range(1, 10000));
    sub->add_option("--bodies", o.bodies, "of Barnes-Hut, on all ranks")->check(CLI::Range(1, 1 << 28));
    sub->add_option("--most", o.most, "bodies in a cell that is not split")->check(CLI::Range(1, 1 << 30));
    sub->add_option("--largest", o.largest, "bytes of the largest reduce against OpenMP")
        ->check(CLI::Range(8, 4 << 20));
  }

  void add_allreduce() {
    auto [sub, o] = add("allreduce", "Reproducible reductions against MPI_Allreduce", bench_allreduce);
    sub->add_option("--emulate", o.emulate,
                    "also schedules under an emulated network: latency and send time, like 2ms,0.2ms");
    sub->add_flag("--local", o.local, "also the local pass over 128 MiB per rank, and the set-up of a large plan");
    sub->add_flag("--arrays", o.arrays, "also arrays of 460 to 21,410,970 numbers");
  }

  void add_multicast() {
    auto [sub, o] =
        add("multicast", "One rank sends to k others: the parameters of the message cost model", bench_multicast);
    sub->add_option("--samples", o.samples, "samples of each case")->check(CLI::Range(2, 1000000));
    sub->add_option("--seconds", o.seconds, "begin no further round of samples after this time")
        ->check(CLI::Range(0.0, 3600.0));
    plots(sub, o.plot_directory);
  }

  CLI::App app_{"Measure on this machine", "isohalo bench"};
  std::function<ExitCode()> action_;
};

}  // namespace

int main(int argc, char** argv) {
  return CommandLine().run(argc, argv);
}
