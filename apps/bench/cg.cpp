/// `isohalo bench cg`: conjugate gradients, reproducible, against a hand-written loop that forms its products of
/// vectors in any order.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/copy_rate.hpp"
#include "apps/bench/hand_cg.hpp"
#include "apps/bench/input_solver.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

struct CgFigures {
  std::string name, shape;
  int ranks = 1;
  double ours = 0, by_hand = 0;  ///< milliseconds per iteration, medians
  double ratio = 0;              ///< by hand / ours, median of pairs
  double of_copy = 0;            ///< the ten arrays' bytes per second over what a copy moves, median of pairs
  double copied = 0;             ///< GB/s
  std::int64_t iterations = 0;   ///< that both have made
  double residual = 0;           ///< |r| / |f| after these
  double residual_difference = 0, difference = 0;  ///< of |r|, and the largest of u, both relative
  bool alike = false;
};

/// Iterations in which ours tries out ways to sweep.
constexpr int kUntilChosen = 40;
/// Arrays that an iteration must read or write, where sums need not be known before a pass ends: p, A p for the one
/// product; r, A p, r for the other; u, p, r, u, p.
constexpr double kArrays = 10;
/// Sums in another order leave paths that part slowly.
constexpr double kAlike = 1e-6;

template <int D>
std::string input_text(const Index<D>& shape, int ranks) {
  PerDim<double, D> length;
  PerDim<std::int64_t, D> slabs;
  std::string sides;
  for (int j = 0; j < D; ++j) {
    length[j] = static_cast<double>(shape[j]);
    slabs[j] = j == 0 ? ranks : 1;
    sides += (j ? ", " : "") + std::string("{fixed = 0.0}");
  }
  return fmt::format(
      "domain.shape = {}\ndomain.length = {}\ndomain.boundary = {{low = [{}], high = [{}]}}\nparallel.process_grid "
      "= "
      "{}\nrun.steps = 1\ninitial.kind = \"constant\"\nsource = {{kind = \"random\", low = -1.0, high = "
      "1.0}}\nsolver "
      "= {{kind = \"poisson\", method = \"cg\"}}\n",
      list_text<D>(shape), list_text<D>(length), sides, sides, list_text<D>(slabs));
}

template <int D>
CgFigures measure(MPI_Comm user, const std::string& name, const Index<D>& shape, int repeats) {
  int ranks = 1;
  MPI_Comm_size(user, &ranks);
  InputSolver<D> ours(user, input_text<D>(shape, ranks));
  const CartesianDomain<D>& domain = ours.domain();
  const Communicator& comm = domain.comm();
  HandCg<D> hand(domain, inverse_squares(ours.input().grid));
  const auto f = std::get<ArrayRef<double, D>>(ours->source()->array);
  for_each_cell(domain.owned(), [&](const Index<D>& i) { hand.source(i) = f.at(i); });
  hand.start();
  CopyRate copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(double)));

  CgFigures figures{name, shape_string<D>(shape), ranks};
  const double before = std::sqrt(hand.rr());
  double rr = ours->advance(kUntilChosen, true);
  hand.advance(kUntilChosen);
  const double once = timed(comm, [&] { rr = ours->advance(2, true), hand.advance(2); }) / 4;
  const auto steps = static_cast<std::int64_t>(std::clamp(0.25 / once, 3.0, 20.0));
  figures.iterations = kUntilChosen + 2;
  std::vector<double> a, b, c, ratio, of_copy;
  for (int k = 0; k < repeats; ++k) {
    a.push_back(timed(comm, [&] { rr = ours->advance(steps, true); }) / static_cast<double>(steps));
    b.push_back(timed(comm, [&] { hand.advance(steps); }) / static_cast<double>(steps));
    c.push_back(copy.seconds(comm, steps));
    ratio.push_back(b.back() / a.back());
    of_copy.push_back(c.back() * 0.5 * kArrays / a.back());
    figures.iterations += steps;
  }
  figures.ours = median(a) * 1e3, figures.by_hand = median(b) * 1e3;
  figures.ratio = median(ratio), figures.of_copy = median(of_copy);
  figures.copied = static_cast<double>(domain.global().cells()) * 16 / median(c) / 1e9;
  figures.residual = std::sqrt(rr) / before;
  figures.residual_difference = std::abs(std::sqrt(hand.rr()) - std::sqrt(rr)) / std::sqrt(rr);
  const auto u = std::get<ArrayRef<double, D>>(ours->fields()[0].array);
  double most[2] = {0, 0};
  for_each_cell(domain.owned(), [&](const Index<D>& i) {
    most[0] = std::max(most[0], std::abs(u.at(i) - hand.u(i)));
    most[1] = std::max(most[1], std::abs(u.at(i)));
  });
  comm.allreduce(most, 2, MPI_DOUBLE, MPI_MAX);
  figures.difference = most[0] / most[1];
  figures.alike = figures.residual_difference <= kAlike && figures.difference <= kAlike;
  return figures;
}

void print(const std::vector<CgFigures>& all, const BenchCgOptions& options) {
  if (options.json) {
    nlohmann::ordered_json j;
    j["benchmark"] = "cg";
    j["machine"] = machine_text();
    j["repeats"] = options.repeats;
    for (const auto& f : all)
      j["cases"].push_back({{"case", f.name},
                            {"shape", f.shape},
                            {"type", "float64"},
                            {"ranks", f.ranks},
                            {"isohalo_ms_per_iteration", f.ours},
                            {"hand_written_ms_per_iteration", f.by_hand},
                            {"ratio", f.ratio},
                            {"bytes_per_cell", kArrays * sizeof(double)},
                            {"copy_gb_per_s", f.copied},
                            {"of_copy", f.of_copy},
                            {"iterations", f.iterations},
                            {"residual", f.residual},
                            {"residual_difference", f.residual_difference},
                            {"difference", f.difference},
                            {"alike", f.alike}});
    fmt::print("{}\n", j.dump(2));
    return;
  }
  fmt::print("{}\n{:5} {:>15} {:>5} {:>10} {:>10} {:>6} {:>7} {:>10} {:>9} {:>11} {:>10}\n", machine_text(), "case",
             "cells", "ranks", "isohalo ms", "by hand ms", "ratio", "of copy", "iterations", "|r|/|f|",
             "differs by", "u by");
  for (const auto& f : all)
    fmt::print("{:5} {:>15} {:>5} {:>10.3f} {:>10.3f} {:>6.3f} {:>7.2f} {:>10} {:>9.2e} {:>11.1e} {:>10.1e}{}\n",
               f.name, f.shape, f.ranks, f.ours, f.by_hand, f.ratio, f.of_copy, f.iterations, f.residual,
               f.residual_difference, f.difference, f.alike ? "" : "  NOT ALIKE");
}

}  // namespace

ExitCode bench_cg(MPI_Comm user, const BenchCgOptions& options) {
  const std::int64_t n2 = options.size ? options.size : 4096, n3 = options.size ? options.size : 256;
  std::vector<CgFigures> all;
  all.push_back(measure<2>(user, "2d", {n2, n2}, options.repeats));
  all.push_back(measure<3>(user, "3d", {n3, n3, n3}, options.repeats));
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  if (rank == 0) print(all, options);
  const bool right = std::all_of(all.begin(), all.end(), [](const CgFigures& f) { return f.alike; });
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
