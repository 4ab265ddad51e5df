/// `isohalo bench depth`: does halo_depth = "auto" choose as well as whoever tries out all depths?

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/input_solver.hpp"
#include "apps/bench/timing.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

struct DepthFigures {
  std::string name, shape;
  int ranks = 1, chosen = 1;      ///< chosen: by "auto"
  double automatic = 0;           ///< million updates/s, as the next one, medians
  std::vector<double> of_forced;  ///< by the depths asked for; 0: too deep for these blocks
  double ratio = 0;               ///< automatic / best forced
  int best = 1;                   ///< the depth of that
};

struct DepthCase {
  std::string name;
  int dimensions;
  std::string solver;  ///< lines of an input file
  std::vector<std::int64_t> sizes;
};

std::string weights_text(std::size_t n) {
  std::string list;
  for (std::size_t k = 0; k < n; ++k)
    list += (k ? ", " : "") + Config::canonical(1.0 / static_cast<double>(n) + 0.0001 * static_cast<double>(k));
  return "[" + list + "]";
}
template <int D>
std::string stencil_text(const Offsets<D>& offsets) {
  std::string list;
  for (const Index<D>& o : offsets) list += (list.empty() ? "" : ", ") + list_text<D>(o);
  return fmt::format("solver = {{kind = \"stencil\", offsets = [{}], weights = {}}}\n", list,
                     weights_text(offsets.size()));
}

const std::vector<DepthCase>& depth_cases() {
  const std::string heat = "solver = {kind = \"heat\", dt = 0.1, kappa = 0.5}\n";
  const std::string wave = "solver = {kind = \"wave\", c = 0.9, dt = 0.2}\n";
  const std::string upwind = "solver = {kind = \"advection\", method = \"upwind\", dt = 0.25, v0 = 0.7}\n";
  const std::string jacobi = "source = {kind = \"random\", seed = 7}\nsolver = {kind = \"poisson\", omega = 0.9}\n";
  // With a steady state other than v = 0, on the way to which numbers become denormal and steps slow.
  const std::string gray_scott = "solver = {kind = \"gray_scott\", dt = 0.1, F = 0.06, k = 0.03}\n";
  // In caches and far beyond them.
  const std::vector<std::int64_t> plane{96, 512, 4096}, cube{24, 64, 256};
  static const std::vector<DepthCase> all{
      {"2d-heat", 2, heat, plane},
      {"3d-heat", 3, heat, cube},
      {"2d-9pt", 2, stencil_text<2>(moore<2>(1, Self::include)), plane},
      {"3d-27pt", 3, stencil_text<3>(moore<3>(1, Self::include)), cube},
      {"3d-star4", 3, stencil_text<3>(star<3>(4, Self::include)), cube},
      {"2d-wave", 2, wave, plane},
      {"3d-wave", 3, wave, cube},
      {"2d-upwind", 2, upwind, plane},
      {"2d-gray_scott", 2, gray_scott, plane},
      {"2d-jacobi", 2, jacobi, plane},
      {"3d-jacobi", 3, jacobi, cube},
  };
  return all;
}

template <int D>
DepthFigures measure(MPI_Comm user, const DepthCase& c, std::int64_t size, const BenchDepthOptions& options) {
  int ranks = 1;
  MPI_Comm_size(user, &ranks);
  Index<D> shape;
  shape.fill(size);
  // A neighbor of poisson is the zero outside: then there is a solution.
  const bool poisson = c.solver.find("poisson") != std::string::npos;
  const std::string side = poisson ? "{fixed = 0.0}" : "\"periodic\"";
  const auto made = [&](const std::string& depth) {
    std::string text = grid_text<D>(shape, ranks, side, depth) + c.solver + "run.residual_every = 0\n";
    const std::string one = "initial.kind = \"random\"\n";
    if (c.solver.find("gray_scott") != std::string::npos)
      text.replace(text.find(one), one.size(), "initial.u.kind = \"random\"\ninitial.v.kind = \"random\"\n");
    return std::make_unique<InputSolver<D>>(user, text);
  };
  std::vector<std::unique_ptr<InputSolver<D>>> solvers;
  solvers.push_back(made("\"auto\""));
  const auto& blocks = solvers[0]->domain().decomposition();
  for (const int depth : options.depths)
    solvers.push_back(depth <= blocks.smallest_extent(0) / 4 ? made(std::to_string(depth)) : nullptr);

  const Communicator& comm = solvers[0]->domain().comm();
  double spent = 0;
  for (int calm = 0, depth = 0; spent < 0.5 || calm < 3;) {  // until a depth is chosen
    spent += timed(comm, [&] { (*solvers[0])->advance(200, false); });
    calm = (*solvers[0])->depth() == depth ? calm + 1 : 0;
    depth = (*solvers[0])->depth();
  }
  const int together = std::max(1, *std::max_element(options.depths.begin(), options.depths.end()));
  double once = 0;
  for (auto& s : solvers) {  // pages are touched, all ways are chosen
    if (!s) continue;
    (*s)->advance(120, false);
    once = timed(comm, [&] { (*s)->advance(together, false); }) / together;
  }
  const auto blocks_of_steps = static_cast<std::int64_t>(std::clamp(0.05 / once / together, 1.0, 10000.0));
  const std::int64_t steps = blocks_of_steps * together;
  std::vector<std::vector<double>> seconds(solvers.size());
  for (int k = 0; k < options.repeats; ++k)
    for (std::size_t s = 0; s < solvers.size(); ++s)
      if (solvers[s]) seconds[s].push_back(timed(comm, [&] { (*solvers[s])->advance(steps, false); }));

  const double updates = static_cast<double>(solvers[0]->domain().global().cells()) * static_cast<double>(steps);
  const auto rate = [&](std::size_t s) { return seconds[s].empty() ? 0.0 : updates / median(seconds[s]) / 1e6; };
  DepthFigures f{c.name, shape_string<D>(shape), comm.size(), (*solvers[0])->depth(), rate(0), {}, 0, 1};
  for (std::size_t s = 1; s < solvers.size(); ++s) f.of_forced.push_back(rate(s));
  const auto best = std::max_element(f.of_forced.begin(), f.of_forced.end());
  f.best = options.depths[static_cast<std::size_t>(best - f.of_forced.begin())];
  f.ratio = f.automatic / *best;
  return f;
}

void print(const std::vector<DepthFigures>& all, const BenchDepthOptions& options) {
  if (options.json) {
    nlohmann::ordered_json j;
    j["benchmark"] = "depth";
    j["machine"] = machine_text();
    j["repeats"] = options.repeats;
    for (const auto& f : all)
      j["cases"].push_back({{"case", f.name},
                            {"shape", f.shape},
                            {"ranks", f.ranks},
                            {"auto_depth", f.chosen},
                            {"auto_mupdates_per_s", f.automatic},
                            {"depths", options.depths},
                            {"mupdates_per_s", f.of_forced},
                            {"best_depth", f.best},
                            {"auto_over_best", f.ratio}});
    fmt::print("{}\n", j.dump(2));
    return;
  }
  fmt::print("{}\n{:14} {:>15} {:>5} {:>10} {:>9}", machine_text(), "case", "cells", "ranks", "auto depth",
             "auto M/s");
  for (const int depth : options.depths) fmt::print(" {:>8}", fmt::format("depth {}", depth));
  fmt::print(" {:>10}\n", "auto/best");
  for (const auto& f : all) {
    fmt::print("{:14} {:>15} {:>5} {:>10} {:>9.0f}", f.name, f.shape, f.ranks, f.chosen, f.automatic);
    for (const double rate : f.of_forced) fmt::print(" {:>8}", rate > 0 ? fmt::format("{:.0f}", rate) : "-");
    fmt::print(" {:>10.3f}\n", f.ratio);
  }
}

}  // namespace

ExitCode bench_depth(MPI_Comm user, const BenchDepthOptions& options) {
  std::vector<DepthFigures> all;
  std::vector<std::string> names;
  for (const DepthCase& c : depth_cases()) {
    names.push_back(c.name);
    if (!options.cases.empty() &&
        std::find(options.cases.begin(), options.cases.end(), c.name) == options.cases.end())
      continue;
    for (const std::int64_t n : options.size > 0 ? std::vector{options.size} : c.sizes)
      all.push_back(c.dimensions == 2 ? measure<2>(user, c, n, options) : measure<3>(user, c, n, options));
  }
  if (all.empty()) throw UsageError(fmt::format("bench depth: no such case; there are {}", fmt::join(names, ", ")));
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  if (rank == 0) print(all, options);
  return ExitCode::fine;
}

}  // namespace isohalo
