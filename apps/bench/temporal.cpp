/// `isohalo bench temporal`: several steps per exchange, in tiles that stay in cache, against a hand-written loop
/// that sweeps the grid once a step.

#include <algorithm>
#include <cstring>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/copy_rate.hpp"
#include "apps/bench/hand_written.hpp"
#include "apps/bench/report.hpp"
#include "apps/bench/sweep_cases.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

template <int D, class HandRow>
Json measure(MPI_Comm user, const Case<D, HandRow>& c, int depth, const BenchTemporalOptions& options) {
  const CartesianDomain<D> domain = periodic_slabs<D>(user, c.shape);
  const auto stepper = c.make(domain, depth, Overlap::automatic);
  StateStepper<double, D>& ours = *stepper;
  if (options.tile.size() == static_cast<std::size_t>(D)) {
    Index<D> tile{};
    std::copy(options.tile.begin(), options.tile.end(), tile.begin());
    ours.sweep_by({tile, {}});
  }
  HandWritten<D, HandRow> hand(domain, c.make_hand);
  for_each_cell(domain.owned(), [&](const Index<D>& i) {
    ours.field().at(i) = number_of(static_cast<std::uint64_t>(linear_index(domain.global(), i)));
  });
  ours.advance(10 * depth, false);  // tiles and an exchange are chosen
  for_each_cell(domain.owned(), [&](const Index<D>& i) { hand.at(i) = ours.field().at(i); });
  CopyRate copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(double)));

  const Communicator& comm = domain.comm();
  enum Way : std::size_t { kOurs, kByHand, kCopying };
  const std::vector<std::function<double()>> ways{
      [&] { return timed(comm, [&] { ours.advance(depth, false); }) / depth; },
      [&] { return timed(comm, [&] { hand.advance(depth); }) / depth; }, [&] { return copy.seconds(comm); }};
  Turns(1, ways);  // pages are touched
  const Turns turns(options.repeats, ways);
  std::int64_t wrong = 0;
  for_each_cell(domain.owned(), [&](const Index<D>& i) {
    wrong += std::memcmp(&ours.field().at(i), &hand.at(i), sizeof(double)) != 0;
  });
  const double cells = static_cast<double>(domain.global().cells());
  return {{"case", c.name},
          {"shape", shape_string<D>(c.shape)},
          {"type", "float64"},
          {"ranks", comm.size()},
          {"depth", depth},
          {"tile", shape_string<D>(ours.time_tile())},
          {"isohalo_mupdates_per_s", cells / turns.middle(kOurs) / 1e6},
          {"hand_written_mupdates_per_s", cells / turns.middle(kByHand) / 1e6},
          {"ratio", turns.ratio(kByHand, kOurs)},
          {"of_copy_limit", turns.ratio(kCopying, kOurs)},
          {"copy_gb_per_s", cells * 16 / turns.middle(kCopying) / 1e9},
          {"same_bits", comm.max(wrong) == 0}};
}

const Table kTable{{{"case", -8, "case"},
                    {"cells", 15, "shape"},
                    {"ranks", 6, "ranks"},
                    {"depth", 6, "depth"},
                    {"tile", 15, "tile"},
                    {"isohalo M/s", 12, "isohalo_mupdates_per_s", ".0f"},
                    {"by hand M/s", 12, "hand_written_mupdates_per_s", ".0f"},
                    {"ratio", 7, "ratio", ".3f"},
                    {"of copy", 9, "of_copy_limit", ".2f"},
                    {"copy GB/s", 10, "copy_gb_per_s", ".1f"}},
                   {{"same_bits", false, "  BITS DIFFER"}}};

}  // namespace

ExitCode bench_temporal(MPI_Comm user, const BenchTemporalOptions& options) {
  Json report = report_of("temporal");
  report["repeats"] = options.repeats;
  CaseChoice cases(options.cases);
  const auto add = [&](const auto& c) {
    if (!cases.wants(c.name)) return;
    for (const int depth : options.depths) report["cases"].push_back(measure(user, c, depth, options));
  };
  const std::int64_t n2 = options.size ? options.size : 8192, n3 = options.size ? options.size : 384;
  add(heat_case<2>("2d-5pt", {n2, n2}));
  add(heat_case<3>("3d-7pt", {n3, n3, n3}));
  add(box_case<2>("2d-9pt", {n2, n2}));
  add(box_case<3>("3d-27pt", {n3, n3, n3}));
  cases.require_one("bench temporal");
  return report_cases(user, options.json, report, machine_text(), kTable, "same_bits");
}

}  // namespace isohalo
