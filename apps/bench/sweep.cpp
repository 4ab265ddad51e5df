/// `isohalo bench sweep`: our step against a hand-written loop with the same arithmetic, halo exchange included.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/sweep_cases.hpp"
#include "apps/bench/timing.hpp"
#include "framework/io/digest.hpp"
#include "framework/run/machine.hpp"

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

template <int D, class HandRow, std::size_t N>
Figures measure(MPI_Comm user, const Case<D, HandRow, N>& c, int repeats) {
  DomainOptions<D> options;
  options.periodic.fill(true);
  PerDim<int, D> slabs;
  slabs.fill(1);
  MPI_Comm_size(user, &slabs[0]);
  options.process_grid = slabs;  // the hand-written code cuts slabs, so ours does
  const CartesianDomain<D> domain(user, c.shape, options);
  const bool chosen = [&] {  // on its own
    const auto automatic = c.make(domain, 1, Overlap::automatic);
    while (!automatic->overlap().decided()) automatic->advance(1, false);
    return automatic->overlap().overlap();
  }();
  const auto first = c.make(domain, 1, Overlap::never), second = c.make(domain, 1, Overlap::always);
  StateStepper<double, D>&ours = *first, &overlapped = *second;
  HandWritten<D, HandRow, N> hand(domain, c.make_hand);
  const auto value = [&](const Index<D>& i, std::size_t f) {
    const auto l = static_cast<std::uint64_t>(linear_index(domain.global(), i));
    return static_cast<double>(mix64(l + f) >> 11) * 0x1p-53;
  };
  const auto array = [](StateStepper<double, D>& stepper, std::size_t f) {
    return std::get<ArrayRef<double, D>>(stepper.fields()[f].array);
  };
  for (std::size_t f = 0; f < N; ++f) {
    const auto a = array(ours, f), b = array(overlapped, f);
    for_each_cell(domain.owned(), [&](const Index<D>& i) { a.at(i) = b.at(i) = hand.at(i, f) = value(i, f); });
  }
  if (ours.fields().size() > N)  // a second time level
    for_each_cell(domain.owned(), [&](const Index<D>& i) {
      array(ours, N).at(i) = array(overlapped, N).at(i) = hand.before(i) = value(i, N);
    });

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
  for (std::size_t f = 0; f < N; ++f) {
    const auto u = array(ours, f), v = array(overlapped, f);
    for_each_cell(domain.owned(), [&](const Index<D>& i) {
      wrong += std::memcmp(&u.at(i), &hand.at(i, f), sizeof(double)) != 0;
      wrong += std::memcmp(&v.at(i), &hand.at(i, f), sizeof(double)) != 0;
    });
  }
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
  add(diffusion_case<2>("2d-cell", {4096, 4096}));
  add(diffusion_case<3>("3d-cell", {256, 256, 256}));
  add(wave_case<2>("2d-wave", {4096, 4096}));
  add(wave_case<3>("3d-wave", {256, 256, 256}));
  add(gray_scott_case("gray_scott", {4096, 2048}));
  if (all.empty())
    throw UsageError(
        "bench sweep: no such case; there are 2d-5pt, 3d-7pt, 2d-9pt, 3d-27pt, 2d-cell, 3d-cell, "
        "2d-wave, 3d-wave, gray_scott");
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
