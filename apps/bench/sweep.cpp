/// `isohalo bench sweep`: our step against a hand-written loop with the same arithmetic, halo exchange included,
/// and against what the memory allows.

#include <fmt/format.h>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/embedded.hpp"
#include "apps/bench/hand_written.hpp"
#include "apps/bench/sweep_cases.hpp"
#include "apps/bench/sweep_measure.hpp"
#include "framework/io/digest.hpp"
#include "framework/run/machine.hpp"
#include "stencils/device/device_field.hpp"

namespace isohalo {

namespace {

/// Against `Hand`, made with the rows of the case. `arrays` as in sweep_row.
template <class Hand, int D, class HandRow, std::size_t N>
Json measure(const SweepOrder& order, const Case<D, HandRow, N>& c, double arrays) {
  const CartesianDomain<D> domain = periodic_slabs<D>(order.comm, c.shape);
  const bool chosen = [&] {  // on its own
    const auto automatic = c.make(domain, 1, Overlap::automatic);
    while (!automatic->overlap().decided()) automatic->advance(1, false);
    return automatic->overlap().overlap();
  }();
  const auto first = c.make(domain, 1, Overlap::never), second = c.make(domain, 1, Overlap::always);
  StateStepper<double, D>&ours = *first, &overlapped = *second;
  Hand hand(domain, c.make_hand);
  const auto begin_with = [&](std::size_t f, const auto& by_hand) {
    const auto a = std::get<ArrayRef<double, D>>(ours.fields()[f].array),
               b = std::get<ArrayRef<double, D>>(overlapped.fields()[f].array);
    for_each_cell(domain.owned(), [&](const Index<D>& i) {
      const auto l = static_cast<std::uint64_t>(linear_index(domain.global(), i));
      a.at(i) = b.at(i) = by_hand(i) = number_of(l + f);
    });
  };
  for (std::size_t f = 0; f < N; ++f) begin_with(f, [&](const Index<D>& i) -> double& { return hand.at(i, f); });
  if constexpr (requires { hand.before(Index<D>()); })
    if (ours.fields().size() > N)  // a second time level
      begin_with(N, [&](const Index<D>& i) -> double& { return hand.before(i); });
  Json row = compare_steps<double, D>(c.name, domain, ours, &overlapped, hand, N, arrays, order.repeats);
  row["overlap_chosen"] = chosen;
  return row;
}

void measure_all(SweepOrder& order) {
  const auto add = [&]<int D, class HandRow, std::size_t N>(const Case<D, HandRow, N>& c, double arrays) {
    if (order.cases.wants(c.name)) order.rows.push_back(measure<HandWritten<D, HandRow, N>>(order, c, arrays));
  };
  // The same loop in a program that has but our exchange, and in our solver.
  const auto add_embedded = [&]<int D>(const Case<D, HandHeatRow<D>>& c) {
    if (order.cases.wants(c.name)) order.rows.push_back(measure<Embedded<D, HandHeatRow<D>>>(order, c, 2));
  };
  const std::int64_t n2 = order.cells(4096), n3 = order.cells(256), n4 = order.cells(64);
  add(heat_case<2>("2d-5pt", {n2, n2}), 2);
  add(heat_case<3>("3d-7pt", {n3, n3, n3}), 2);
  add(box_case<2>("2d-9pt", {n2, n2}), 2);
  add(box_case<3>("3d-27pt", {n3, n3, n3}), 2);
  add(star_case<2, 2>("2d-star2", {n2, n2}), 2);
  add(star_case<3, 2>("3d-star2", {n3, n3, n3}), 2);
  add(star_case<3, 4>("3d-star4", {n3, n3, n3}), 2);
  const Offsets<2> odd{{-3, 1}, {-2, -2}, {-1, 3}, {0, 0}, {0, 2}, {1, -3}, {3, -1}};  // that no rule gives
  add(list_case<2, 7, 3>("2d-list", {n2, n2}, odd), 2);
  add(heat_case<1>("1d-3pt", {n2 * n2}), 2);
  add(heat_case<4>("4d-9pt", {n4, n4, n4, n4}), 2);
  add(diffusion_case<2>("2d-cell", {n2, n2}), 2);
  add(diffusion_case<3>("3d-cell", {n3, n3, n3}), 2);
  add(wave_case<2>("2d-wave", {n2, n2}), 3);
  add(wave_case<3>("3d-wave", {n3, n3, n3}), 3);
  add(gray_scott_case("gray_scott", {n2, order.size ? n2 : n2 / 2}), 4);
  add_embedded(loop_case<2>("2d-embedded", {n2, n2}));
  add_embedded(loop_case<3>("3d-embedded", {n3, n3, n3}));
  measure_solver_steps(order);
  order.cases.require_one("bench sweep");
}

const Table kTable{{{"case", -12, "case"},
                    {"cells", 15, "shape"},
                    {"ranks", 5, "ranks"},
                    {"isohalo M/s", 11, "isohalo_mupdates_per_s", ".0f"},
                    {"by hand M/s", 11, "hand_written_mupdates_per_s", ".0f"},
                    {"ratio", 6, "ratio", ".3f"},
                    {"B/update", 8, "bytes_per_update", ".0f"},
                    {"GB/s", 7, "gb_per_s", ".1f"},
                    {"copy GB/s", 9, "copy_gb_per_s", ".1f"},
                    {"of copy", 8, "of_copy", ".2f"},
                    {"residual cost", 13, "residual_cost", ".3f"},
                    {"overlap cost", 12, "overlap_cost", ".3f"}},
                   {{"overlap_chosen", true, "  (chosen)"}, {"same_bits", false, "  BITS DIFFER"}}};

}  // namespace

ExitCode bench_sweep(MPI_Comm user, const BenchSweepOptions& options) {
  const bool on_device = options.space == "device";
  SweepOrder order{user, options.size, options.repeats, CaseChoice(options.cases)};
  on_device ? measure_device_steps(order) : measure_all(order);
  Json report = report_of("sweep");
  report["space"] = on_device ? DeviceSpace::name() : SweepSpace::name();
  report["repeats"] = options.repeats;
  report["cases"] = order.rows;
  return report_cases(user, options.json, report, machine_text() + ", " + report["space"].get<std::string>(),
                      kTable, "same_bits");
}

}  // namespace isohalo
