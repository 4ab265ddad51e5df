/// `isohalo bench depth`: does halo_depth = "auto" choose as well as whoever tries out all depths?

#include <algorithm>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/input_solver.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/report.hpp"

namespace isohalo {

namespace {

struct DepthCase {
  std::string name;
  int dimensions;
  std::string solver;  ///< lines of an input file, from its first field on
  std::vector<std::int64_t> sizes;
};

const std::vector<DepthCase>& depth_cases() {
  const std::string one = kRandomField;
  const std::string heat = one + kHeat;
  const std::string wave = one + "solver = {kind = \"wave\", c = 0.9, dt = 0.2}\n";
  const std::string upwind = one + "solver = {kind = \"advection\", method = \"upwind\", dt = 0.25, v0 = 0.7}\n";
  const std::string jacobi =
      one + "source = {kind = \"random\", seed = 7}\nsolver = {kind = \"poisson\", omega = 0.9}\n";
  // With a steady state other than v = 0, on the way to which numbers become denormal and steps slow.
  const std::string gray_scott =
      random_text({"u", "v"}) + "solver = {kind = \"gray_scott\", dt = 0.1, F = 0.06, k = 0.03}\n";
  // In caches and far beyond them.
  const std::vector<std::int64_t> plane{96, 512, 4096}, cube{24, 64, 256};
  static const std::vector<DepthCase> all{
      {"2d-heat", 2, heat, plane},
      {"3d-heat", 3, heat, cube},
      {"2d-9pt", 2, one + stencil_text<2>(moore<2>(1, Self::include)), plane},
      {"3d-27pt", 3, one + stencil_text<3>(moore<3>(1, Self::include)), cube},
      {"3d-star4", 3, one + stencil_text<3>(star<3>(4, Self::include)), cube},
      {"2d-wave", 2, wave, plane},
      {"3d-wave", 3, wave, cube},
      {"2d-upwind", 2, upwind, plane},
      {"2d-gray_scott", 2, gray_scott, plane},
      {"2d-jacobi", 2, jacobi, plane},
      {"3d-jacobi", 3, jacobi, cube},
      {"life", 2, one + kLife, {1024, 16384}},
  };
  return all;
}

template <int D>
Json measure(MPI_Comm user, const DepthCase& c, std::int64_t size, const BenchDepthOptions& options) {
  const Index<D> shape = index_of<D>(size);
  // A neighbor of poisson is the zero outside: then there is a solution.
  const bool poisson = c.solver.find("poisson") != std::string::npos;
  const auto made = [&](const std::string& depth) {
    return std::make_unique<InputSolver<D>>(
        user, grid_text<D>(user, shape, poisson ? kZeroSide : kPeriodicSide, depth) + c.solver +
                  "run.residual_every = 0\n");
  };
  const std::vector<int> depths(options.depths.begin(), options.depths.end());
  std::vector<std::unique_ptr<InputSolver<D>>> solvers;
  solvers.push_back(made("\"auto\""));
  const auto& blocks = solvers[0]->domain().decomposition();
  for (const int depth : depths)
    solvers.push_back(depth <= blocks.smallest_extent(0) / 4 ? made(std::to_string(depth)) : nullptr);

  const Communicator& comm = solvers[0]->domain().comm();
  double spent = 0;
  for (int calm = 0, depth = 0; spent < 0.5 || calm < 3;) {  // until a depth is chosen
    spent += timed(comm, [&] { (*solvers[0])->advance(200, false); });
    calm = (*solvers[0])->depth() == depth ? calm + 1 : 0;
    depth = (*solvers[0])->depth();
  }
  const int together = depths.back();
  double once = 0;
  for (auto& s : solvers) {  // pages are touched, all ways are chosen
    if (!s) continue;
    (*s)->advance(std::max(120, 10 * together), false);
    once = timed(comm, [&] { (*s)->advance(together, false); }) / together;
  }
  const auto blocks_of_steps = static_cast<std::int64_t>(std::clamp(0.05 / once / together, 1.0, 10000.0));
  const std::int64_t steps = blocks_of_steps * together;
  std::vector<std::function<double()>> ways;
  for (auto& s : solvers)
    ways.push_back([&] { return s ? timed(comm, [&] { (*s)->advance(steps, false); }) : 0.0; });
  const Turns turns(options.repeats, ways);

  const double updates = static_cast<double>(solvers[0]->domain().global().cells()) * static_cast<double>(steps);
  const auto rate = [&](std::size_t s) { return updates / turns.middle(s) / 1e6; };
  Json by_depth = Json::object();  // but for what is too deep for these blocks
  std::size_t best = 0;
  for (std::size_t s = 1; s < solvers.size(); ++s) {
    if (!solvers[s]) continue;
    by_depth[std::to_string(depths[s - 1])] = rate(s);
    if (best == 0 || rate(s) > rate(best)) best = s;
  }
  if (best == 0) throw UsageError("bench depth: none of these depths fits the blocks of " + c.name);
  return {{"case", c.name},
          {"shape", shape_string<D>(shape)},
          {"ranks", comm.size()},
          {"auto_depth", (*solvers[0])->depth()},
          {"auto_mupdates_per_s", rate(0)},
          {"mupdates_per_s", by_depth},
          {"best_depth", depths[best - 1]},
          {"auto_over_best", rate(0) / rate(best)}};
}

}  // namespace

ExitCode bench_depth(MPI_Comm user, const BenchDepthOptions& options) {
  Json report = report_of("depth");
  report["repeats"] = options.repeats;
  Cases cases(options.cases);
  for (const DepthCase& c : depth_cases())
    for (const std::int64_t n : options.size > 0 ? std::vector{options.size} : c.sizes)
      cases.add(c.name, [&, n] {
        report["cases"].push_back(c.dimensions == 2 ? measure<2>(user, c, n, options)
                                                    : measure<3>(user, c, n, options));
      });
  cases.measure("bench depth");
  return print_report(user, options.json, report, true);
}

}  // namespace isohalo
