/// `isohalo bench sweep`: our step against a hand-written loop with the same arithmetic, halo exchange included.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/hand_written.hpp"
#include "apps/bench/sweep_cases.hpp"
#include "apps/bench/timing.hpp"
#include "framework/io/digest.hpp"
#include "framework/run/machine.hpp"
#include "stencils/cell_solver.hpp"
#include "stencils/deep_stepper.hpp"

namespace isohalo {

namespace {

struct Figures {
  std::string name, shape;
  int ranks = 1;
  double ours = 0, by_hand = 0, with_residual = 0;  ///< million updates/s, medians
  double ratio = 0;                                 ///< ours / by hand, median of pairs
  double residual_cost = 0;                         ///< time with the residual / without, median of pairs
  double overlap_cost = 0;  ///< time with exchange and sweep overlapped / one after the other
  bool overlap = false;     ///< what a stepper on its own chooses
  bool same_bits = false;
};

template <int D, class Row, class HandRow>
Figures measure(MPI_Comm user, const Case<D, Row, HandRow>& c, int repeats) {
  DomainOptions<D> options;
  options.periodic.fill(true);
  PerDim<int, D> slabs;
  slabs.fill(1);
  MPI_Comm_size(user, &slabs[0]);
  options.process_grid = slabs;  // the hand-written code cuts slabs, so ours does
  const CartesianDomain<D> domain(user, c.shape, options);
  const auto stepper = [&](Overlap overlap) {
    return DeepStepper<double, D, Row>("u", domain, c.stencil, BoundaryRules<D>{}, 1, c.make_row,
                                       Exchange::automatic, overlap);
  };
  const bool chosen = [&] {  // on its own
    auto automatic = stepper(Overlap::automatic);
    while (!automatic.overlap().decided()) automatic.advance(1, false);
    return automatic.overlap().overlap();
  }();
  auto ours = stepper(Overlap::never), overlapped = stepper(Overlap::always);
  HandWritten<D, HandRow> hand(domain, c.make_hand);
  const auto value = [&](const Index<D>& i) {
    return static_cast<double>(mix64(static_cast<std::uint64_t>(linear_index(domain.global(), i))) >> 11) * 0x1p-53;
  };
  for_each_cell(domain.owned(),
                [&](const Index<D>& i) { ours.field().at(i) = overlapped.field().at(i) = hand.at(i) = value(i); });

  const double cells = static_cast<double>(domain.global().cells());
  const Communicator& comm = domain.comm();
  const double once = timed(comm, [&] { ours.advance(2, false), hand.advance(2); }) / 4;
  overlapped.advance(2, false);
  const auto steps = static_cast<std::int64_t>(std::clamp(0.25 / once, 4.0, 1000.0));
  std::vector<double> a, b, r, o, ratio, cost, overlap;
  for (int k = 0; k < repeats; ++k) {  // A B C A B C .. so that all see the same weather
    a.push_back(timed(comm, [&] { ours.advance(steps, false); }));
    b.push_back(timed(comm, [&] { hand.advance(steps); }));
    r.push_back(timed(comm, [&] {
      for (std::int64_t s = 0; s < steps; ++s) ours.advance(1, true);
    }));
    o.push_back(timed(comm, [&] { overlapped.advance(steps, false); }));
    hand.advance(steps);  // as far as ours
    overlapped.advance(steps, false);
    overlap.push_back(o.back() / a.back());
    ratio.push_back(b.back() / a.back());
    cost.push_back(r.back() / a.back());
  }
  std::int64_t wrong = 0;
  for_each_cell(domain.owned(), [&](const Index<D>& i) {
    wrong += std::memcmp(&ours.field().at(i), &hand.at(i), sizeof(double)) != 0;
    wrong += std::memcmp(&overlapped.field().at(i), &hand.at(i), sizeof(double)) != 0;
  });
  const auto rate = [&](const std::vector<double>& v) {
    return cells * static_cast<double>(steps) / median(v) / 1e6;
  };
  return {c.name,
          shape_string<D>(c.shape),
          comm.size(),
          rate(a),
          rate(b),
          rate(r),
          median(ratio),
          median(cost),
          median(overlap),
          chosen,
          comm.max(wrong) == 0};
}

/// The same arithmetic as a function of a cell.
struct Diffusion {
  static constexpr auto fields = names("u");
  template <class Cell>
  double operator()(const Cell& u, double) const {
    return u() + laplace(u);
  }
};

template <int D>
auto cell_case(const std::string& name, const Index<D>& shape) {
  using Row = detail::CellRow<Diffusion, double, D>;
  CellGeometry<D> geometry;
  for (int j = 0; j < D; ++j) geometry.inverse_square[j] = 0.1 + 0.01 * j;
  return Case<D, Row, HandHeatRow<D>>{name, shape, StencilShape<D>::star(1),
                                      [=](const Index<D>& s) {
                                        CellGeometry<D> g = geometry;
                                        g.stride = s;
                                        return Row({}, g, 0.0);
                                      },
                                      [=](const Index<D>& s) {
                                        return HandHeatRow<D>{geometry.inverse_square, s};
                                      }};
}

}  // namespace

ExitCode bench_sweep(MPI_Comm user, const BenchSweepOptions& options) {
  std::vector<Figures> all;
  const auto wanted = [&](const std::string& name) {
    return options.cases.empty() ||
           std::find(options.cases.begin(), options.cases.end(), name) != options.cases.end();
  };
  const auto add = [&](const auto& c) {
    if (wanted(c.name)) all.push_back(measure(user, c, options.repeats));
  };
  add(heat_case<2>("2d-5pt", {4096, 4096}));
  add(heat_case<3>("3d-7pt", {256, 256, 256}));
  add(box_case<2>("2d-9pt", {4096, 4096}));
  add(box_case<3>("3d-27pt", {256, 256, 256}));
  add(cell_case<2>("2d-cell", {4096, 4096}));
  add(cell_case<3>("3d-cell", {256, 256, 256}));
  if (all.empty())
    throw UsageError("bench sweep: no such case; there are 2d-5pt, 3d-7pt, 2d-9pt, 3d-27pt, 2d-cell, 3d-cell");
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  bool right = true;
  for (const auto& f : all) right = right && f.same_bits;
  if (rank != 0) return right ? ExitCode::fine : ExitCode::different;
  if (options.json) {
    nlohmann::ordered_json j;
    j["benchmark"] = "sweep";
    j["machine"] = machine_text();
    j["repeats"] = options.repeats;
    for (const auto& f : all)
      j["cases"].push_back({{"case", f.name},
                            {"shape", f.shape},
                            {"type", "float64"},
                            {"ranks", f.ranks},
                            {"isohalo_mupdates_per_s", f.ours},
                            {"hand_written_mupdates_per_s", f.by_hand},
                            {"ratio", f.ratio},
                            {"with_residual_mupdates_per_s", f.with_residual},
                            {"residual_cost", f.residual_cost},
                            {"overlap_cost", f.overlap_cost},
                            {"overlap_chosen", f.overlap},
                            {"same_bits", f.same_bits}});
    fmt::print("{}\n", j.dump(2));
  } else {
    fmt::print("{}\n{:10} {:>16} {:>6} {:>12} {:>12} {:>7} {:>14} {:>13}\n", machine_text(), "case", "cells",
               "ranks", "isohalo M/s", "by hand M/s", "ratio", "residual cost", "overlap cost");
    for (const auto& f : all)
      fmt::print("{:10} {:>16} {:>6} {:>12.0f} {:>12.0f} {:>7.3f} {:>14.3f} {:>13.3f}{}{}\n", f.name, f.shape,
                 f.ranks, f.ours, f.by_hand, f.ratio, f.residual_cost, f.overlap_cost,
                 f.overlap ? "  (chosen)" : "", f.same_bits ? "" : "  BITS DIFFER");
  }
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
