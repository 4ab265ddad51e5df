/// `isohalo bench temporal`: several steps per exchange, in tiles that stay in cache, against a hand-written loop
/// that sweeps the grid once a step.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/copy_rate.hpp"
#include "apps/bench/hand_written.hpp"
#include "apps/bench/sweep_cases.hpp"
#include "framework/io/digest.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

struct TemporalFigures {
  std::string name, shape, tile;
  int ranks = 1, depth = 1;
  double ours = 0, by_hand = 0;  ///< million updates/s, medians
  double ratio = 0;              ///< ours / by hand, median of pairs
  double of_copy = 0;            ///< ours / what a sweep could do that runs as fast as memory is copied, of pairs
  double copied = 0;             ///< GB/s of all ranks, read and written
  bool same_bits = false;
};

template <int D, class HandRow>
TemporalFigures measure(MPI_Comm user, const Case<D, HandRow>& c, int depth, const BenchTemporalOptions& options) {
  DomainOptions<D> o;
  o.periodic.fill(true);
  PerDim<int, D> slabs;
  slabs.fill(1);
  MPI_Comm_size(user, &slabs[0]);
  o.process_grid = slabs;  // the hand-written code cuts slabs, so ours does
  const CartesianDomain<D> domain(user, c.shape, o);
  const auto stepper = c.make(domain, depth, Overlap::automatic);
  StateStepper<double, D>& ours = *stepper;
  if (options.tile.size() == static_cast<std::size_t>(D)) {
    Index<D> tile{};
    std::copy(options.tile.begin(), options.tile.end(), tile.begin());
    ours.sweep_by({tile, {}});
  }
  HandWritten<D, HandRow> hand(domain, c.make_hand);
  const auto value = [&](const Index<D>& i) {
    return static_cast<double>(mix64(static_cast<std::uint64_t>(linear_index(domain.global(), i))) >> 11) * 0x1p-53;
  };
  for_each_cell(domain.owned(), [&](const Index<D>& i) { ours.field().at(i) = hand.at(i) = value(i); });
  CopyRate copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(double)));

  const Communicator& comm = domain.comm();
  const double cells = static_cast<double>(domain.global().cells());
  std::vector<double> a, b, m, ratio, of_copy;
  for (int k = -1; k < options.repeats; ++k) {
    const double x = timed(comm, [&] { ours.advance(depth, false); });
    const double y = timed(comm, [&] { hand.advance(depth); });
    const double z = copy.seconds(comm);
    if (k < 0) continue;  // pages are touched, and an exchange is chosen
    a.push_back(x / depth), b.push_back(y / depth), m.push_back(z);
    ratio.push_back(y / x), of_copy.push_back(z * depth / x);
  }
  std::int64_t wrong = 0;
  for_each_cell(domain.owned(), [&](const Index<D>& i) {
    wrong += std::memcmp(&ours.field().at(i), &hand.at(i), sizeof(double)) != 0;
  });
  return {c.name,
          shape_string<D>(c.shape),
          shape_string<D>(ours.tiles().extents),
          comm.size(),
          depth,
          cells / median(a) / 1e6,
          cells / median(b) / 1e6,
          median(ratio),
          median(of_copy),
          cells * 16 / median(m) / 1e9,
          comm.max(wrong) == 0};
}

void print(const std::vector<TemporalFigures>& all, const BenchTemporalOptions& options) {
  if (options.json) {
    nlohmann::ordered_json j;
    j["benchmark"] = "temporal";
    j["machine"] = machine_text();
    j["repeats"] = options.repeats;
    for (const auto& f : all)
      j["cases"].push_back({{"case", f.name},
                            {"shape", f.shape},
                            {"type", "float64"},
                            {"ranks", f.ranks},
                            {"depth", f.depth},
                            {"tile", f.tile},
                            {"isohalo_mupdates_per_s", f.ours},
                            {"hand_written_mupdates_per_s", f.by_hand},
                            {"ratio", f.ratio},
                            {"of_copy_limit", f.of_copy},
                            {"copy_gb_per_s", f.copied},
                            {"same_bits", f.same_bits}});
    fmt::print("{}\n", j.dump(2));
    return;
  }
  fmt::print("{}\n{:8} {:>15} {:>6} {:>6} {:>15} {:>12} {:>12} {:>7} {:>9} {:>10}\n", machine_text(), "case",
             "cells", "ranks", "depth", "tile", "isohalo M/s", "by hand M/s", "ratio", "of copy", "copy GB/s");
  for (const auto& f : all)
    fmt::print("{:8} {:>15} {:>6} {:>6} {:>15} {:>12.0f} {:>12.0f} {:>7.3f} {:>9.2f} {:>10.1f}{}\n", f.name,
               f.shape, f.ranks, f.depth, f.tile, f.ours, f.by_hand, f.ratio, f.of_copy, f.copied,
               f.same_bits ? "" : "  BITS DIFFER");
}

}  // namespace

ExitCode bench_temporal(MPI_Comm user, const BenchTemporalOptions& options) {
  std::vector<TemporalFigures> all;
  const auto add = [&](const auto& c) {
    if (!options.cases.empty() &&
        std::find(options.cases.begin(), options.cases.end(), c.name) == options.cases.end())
      return;
    for (const int depth : options.depths) all.push_back(measure(user, c, depth, options));
  };
  const std::int64_t n2 = options.size ? options.size : 8192, n3 = options.size ? options.size : 384;
  add(heat_case<2>("2d-5pt", {n2, n2}));
  add(heat_case<3>("3d-7pt", {n3, n3, n3}));
  add(box_case<2>("2d-9pt", {n2, n2}));
  add(box_case<3>("3d-27pt", {n3, n3, n3}));
  if (all.empty()) throw UsageError("bench temporal: no such case; there are 2d-5pt, 3d-7pt, 2d-9pt, 3d-27pt");
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  if (rank == 0) print(all, options);
  const bool right = std::all_of(all.begin(), all.end(), [](const TemporalFigures& f) { return f.same_bits; });
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
