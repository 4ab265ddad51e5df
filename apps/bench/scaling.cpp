/// `isohalo bench scaling`: strong and weak scaling over parts of the launch's ranks, a model fitted to them, and
/// what it says of more ranks than there are.

#include "apps/bench/scaling.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/bench/input_solver.hpp"
#include "apps/bench/owned_comm.hpp"
#include "apps/bench/timing.hpp"
#include "datatypes/printable.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/mpi/agreement.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

namespace {

PerDim<int, 3> balanced(int ranks) {
  int dims[3] = {0, 0, 0};
  MPI_Dims_create(ranks, 3, dims);
  return {dims[0], dims[1], dims[2]};
}
Cut weak(std::int64_t block, int ranks) {
  Cut c{{}, balanced(ranks)};
  for (int j = 0; j < 3; ++j) c.shape[j] = block * c.blocks[j];
  return c;
}
Cut strong(std::int64_t extent, int ranks) {
  return {{extent, extent, extent}, balanced(ranks)};
}

/// Seconds of a step, the median. Collective.
double measured(MPI_Comm part, const Cut& cut, bool residual, const BenchScalingOptions& options) {
  PerDim<std::int64_t, 3> blocks;
  for (int j = 0; j < 3; ++j) blocks[j] = cut.blocks[j];
  const char* const sides = "[\"neumann\", \"neumann\", \"neumann\"]";
  InputSolver<3> solver(part, fmt::format("domain.shape = {}\ndomain.boundary = {{low = {}, high = {}}}\n"
                                          "parallel = {{process_grid = {}, halo_depth = 1}}\nrun.steps = 1\n"
                                          "initial.kind = \"random\"\nsolver.kind = \"heat\"\n",
                                          list_text<3>(cut.shape), sides, sides, list_text<3>(blocks)));
  const Communicator& comm = solver.domain().comm();
  const auto advance = [&](std::int64_t steps) {
    if (!residual) return solver->advance(steps, false);
    for (std::int64_t s = 0; s < steps; ++s) solver->advance(1, true);
    return 0.0;
  };
  advance(80);  // all that is tried out in the first steps is chosen
  const double once = timed(comm, [&] { advance(2); }) / 2;
  const auto steps = static_cast<std::int64_t>(std::clamp(options.seconds_each / once, 2.0, 10000.0));
  return median_of(options.repeats, [&] { return timed(comm, [&] { advance(steps); }); }) /
         static_cast<double>(steps);
}

/// All points on the first ranks of the launch, as many as they are for; on rank 0. Collective.
std::vector<ScalingPoint> measure_all(const Communicator& comm, MPI_Comm user, const std::set<int>& counts,
                                      const BenchScalingOptions& options) {
  std::vector<ScalingPoint> points;
  const auto cores = static_cast<int>(comm.min(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L)));
  for (const int ranks : counts) {
    const OwnedComm part = first_ranks(user, ranks);
    if (part.comm != MPI_COMM_NULL) {
      const int threads = host_threads();
      const Communicator there = Communicator::of(part.comm);
      const auto sharing = static_cast<int>(there.max(there.ranks_on_node() * threads));
      const auto add = [&](const char* kind, const Cut& cut) {
        for (const bool residual : {false, true})
          points.push_back({kind, cut, threads, sharing, cores, residual ? 1.0 : 0.0,
                            measured(part.comm, cut, residual, options)});
      };
      for (const std::int64_t block : options.blocks) add("weak", weak(block, ranks));
      for (const std::int64_t extent : options.grids) add("strong", strong(extent, ranks));
    }
    comm.barrier();  // the other ranks sleep here
  }
  return points;
}

/// Adds the points that an earlier launch printed, on other ranks or threads of the same kind of machine.
void add_points_in(const std::string& file, std::vector<ScalingPoint>& points) {
  std::ifstream in(file);
  try {
    const auto all = nlohmann::json::parse(in);
    for (const auto& j : all.at("points")) {
      ScalingPoint& p = points.emplace_back();
      j.at("kind").get_to(p.kind);
      j.at("shape").get_to(p.cut.shape), j.at("blocks").get_to(p.cut.blocks);
      j.at("threads").get_to(p.threads), j.at("sharing").get_to(p.sharing), j.at("cores").get_to(p.cores);
      j.at("residual").get_to(p.residual), j.at("seconds").get_to(p.seconds);
      bool right = p.threads > 0 && p.sharing > 0 && p.cores > 0 && p.seconds > 0;
      for (int d = 0; d < 3; ++d) right = right && p.cut.blocks[d] > 0 && p.cut.blocks[d] <= p.cut.shape[d];
      if (!right)
        throw UsageError(
            fmt::format("bench scaling: --with {}: this point is of no launch: {}", printable(file), j.dump()));
    }
  } catch (const nlohmann::json::exception&) {
    throw UsageError(fmt::format("bench scaling: --with {} {}: name a file that `bench scaling --json` printed",
                                 printable(file),
                                 in.is_open() ? "is no report of measured points" : "cannot be read"));
  }
}

Parts parts_of(const Cut& cut, int sharing, double residual, const StepCosts& costs) {
  Parts parts{cut};
  for (const Amount& a : amounts_of(work_of(cut, 1, sharing, residual))) {
    const double seconds = a.amount * costs.of(a.term);
    (a.term.starts_with("cell")          ? parts.compute
     : a.term == "step"                  ? parts.step
     : a.term == "message"               ? parts.messages
     : a.term == "byte"                  ? parts.bytes
     : a.term.starts_with("residual of") ? parts.residual
                                         : parts.sum) += seconds;
  }
  return parts;
}

/// Enters what a step takes, if the costs are known.
void add(Outlook& o, std::vector<Parts>& list, const Cut& cut, double residual) {
  for (int j = 0; j < 3; ++j)
    if (cut.blocks[j] > cut.shape[j]) return;
  bool known = true;
  const int cores = std::min(cut.ranks(), o.sharing);
  for (const Amount& a : amounts_of(work_of(cut, 1, cores, residual)))
    if (!o.costs.has(a.term)) o.missing.insert(a.term), known = false;
  if (known) list.push_back(parts_of(cut, cores, residual, o.costs));
}

Outlook outlook_of(const std::vector<ScalingPoint>& points, const BenchScalingOptions& options) {
  std::vector<MeasuredStep> steps;
  Outlook o;
  for (const ScalingPoint& p : points) {
    if (!p.fits()) continue;
    steps.push_back({amounts_of(p.work()), p.seconds});
    o.sharing = std::max(o.sharing, p.sharing);
  }
  o.fitted = o.costs = fit_costs(steps);
  for (auto& term : o.costs.terms) {
    if (options.latency_us > 0 && (term.name == "message" || term.name == "level of a sum"))
      term.seconds = options.latency_us * 1e-6;
    if (options.gb_per_s > 0 && term.name == "byte") term.seconds = 1e-9 / options.gb_per_s;
  }
  const double residual = 1.0 / options.residual_every;
  if (std::none_of(points.begin(), points.end(),
                   [](const ScalingPoint& p) { return p.fits() && p.cut.ranks() > 1; }))
    return o;  // no message was measured
  for (int ranks = 1; ranks <= 1000000; ranks *= 10) {
    add(o, o.weak, weak(options.weak_block, ranks), residual);
    add(o, o.strong, strong(options.strong_grid, ranks), residual);
  }
  return o;
}

/// Powers of two up to all ranks, and all.
std::set<int> usual_counts(int size) {
  std::set<int> counts{size};
  for (int p = 1; p < size; p *= 2) counts.insert(p);
  return counts;
}

}  // namespace

StepWork work_of(const Cut& cut, int threads, int sharing, double residual) {
  Index<3> block;
  for (int j = 0; j < 3; ++j) block[j] = (cut.shape[j] + cut.blocks[j] - 1) / cut.blocks[j];
  StepWork w;
  w.ranks = cut.ranks();
  w.sharing = sharing;
  w.residual = residual;
  const double cells = static_cast<double>(block[0] * block[1] * block[2]);
  w.cells = cells / threads;
  for (int j = 0; j < 3; ++j) {
    const int sides = std::min(cut.blocks[j] - 1, 2);
    w.messages += sides;
    w.bytes += sides * cells / static_cast<double>(block[j]) * sizeof(double);
  }
  w.level = memory_level(w.cells * 2 * sizeof(double), sharing);
  return w;
}

ExitCode bench_scaling(MPI_Comm user, const BenchScalingOptions& options) {
  const Communicator comm = Communicator::of(user);
  const std::set<int> counts = options.ranks.empty() ? usual_counts(comm.size()) : options.ranks;
  if (*counts.rbegin() > comm.size())
    throw UsageError(fmt::format("bench scaling: --ranks {} of a launch of {}: start more, or measure fewer",
                                 *counts.rbegin(), comm.size()));
  std::vector<ScalingPoint> earlier;
  on_root(comm, [&] {
    for (const std::string& file : options.with) add_points_in(file, earlier);
  });
  std::vector<ScalingPoint> points = measure_all(comm, user, counts, options);
  points.insert(points.end(), earlier.begin(), earlier.end());
  on_root(comm, [&] {
    const Outlook o = outlook_of(points, options);
    print_scaling(points, o, options);
    if (!options.plot_directory.empty()) plot_scaling(points, o, options.plot_directory);
  });
  return ExitCode::fine;
}

}  // namespace isohalo
