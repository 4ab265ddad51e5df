/// `isohalo bench sweep`: our step against a hand-written loop with the same arithmetic, halo exchange included,
/// and against what the memory allows.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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

/// Against `Hand`, made with the rows of the case. `arrays`: those that a step must read, and write.
template <class Hand, int D, class HandRow, std::size_t N>
SweepFigures measure(MPI_Comm user, const Case<D, HandRow, N>& c, double arrays, int repeats) {
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
  Hand hand(domain, c.make_hand);
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
  if constexpr (requires { hand.before(Index<D>()); })
    if (ours.fields().size() > N) {  // a second time level
      const auto a = array(ours, N), b = array(overlapped, N);
      for_each_cell(domain.owned(), [&](const Index<D>& i) { a.at(i) = b.at(i) = hand.before(i) = value(i, N); });
    }
  SweepFigures f = compare_steps<double, D>(domain, ours, &overlapped, hand, N, arrays, repeats);
  f.name = c.name;
  f.type = "float64";
  f.overlap = chosen;
  return f;
}

template <int D, class HandRow, std::size_t N>
SweepFigures measure_by_hand(MPI_Comm user, const Case<D, HandRow, N>& c, double arrays, int repeats) {
  return measure<HandWritten<D, HandRow, N>>(user, c, arrays, repeats);
}

/// The same loop in a program that has but our exchange, and in our solver.
template <int D>
SweepFigures measure_embedded(MPI_Comm user, const Case<D, HandHeatRow<D>>& c, int repeats) {
  return measure<Embedded<D, HandHeatRow<D>>>(user, c, 2, repeats);
}

std::vector<SweepFigures> measure_all(const SweepOrder& order) {
  std::vector<SweepFigures> all;
  std::vector<std::string> names;
  const auto add = [&](const auto& c, double arrays) {
    names.push_back(c.name);
    if (order.wants(c.name)) all.push_back(measure_by_hand(order.comm, c, arrays, order.repeats));
  };
  const auto add_embedded = [&](const auto& c) {
    names.push_back(c.name);
    if (order.wants(c.name)) all.push_back(measure_embedded(order.comm, c, order.repeats));
  };
  const std::int64_t n2 = order.size ? order.size : 4096, n3 = order.size ? order.size : 256,
                     n4 = order.size ? order.size : 64;
  add(heat_case<2>("2d-5pt", {n2, n2}), 2);
  add(heat_case<3>("3d-7pt", {n3, n3, n3}), 2);
  add(box_case<2>("2d-9pt", {n2, n2}), 2);
  add(box_case<3>("3d-27pt", {n3, n3, n3}), 2);
  add(star_case<2, 2>("2d-star2", {n2, n2}), 2);
  add(star_case<3, 2>("3d-star2", {n3, n3, n3}), 2);
  add(star_case<3, 4>("3d-star4", {n3, n3, n3}), 2);
  add(odd_list_case("2d-list", {n2, n2}), 2);
  add(heat_case<1>("1d-3pt", {n2 * n2}), 2);
  add(heat_case<4>("4d-9pt", {n4, n4, n4, n4}), 2);
  add(diffusion_case<2>("2d-cell", {n2, n2}), 2);
  add(diffusion_case<3>("3d-cell", {n3, n3, n3}), 2);
  add(wave_case<2>("2d-wave", {n2, n2}), 3);
  add(wave_case<3>("3d-wave", {n3, n3, n3}), 3);
  add(gray_scott_case("gray_scott", {n2, order.size ? n2 : n2 / 2}), 4);
  add_embedded(loop_case<2>("2d-embedded", {n2, n2}));
  add_embedded(loop_case<3>("3d-embedded", {n3, n3, n3}));
  const auto more = measure_solver_steps(order);
  all.insert(all.end(), more.begin(), more.end());
  for (const auto& name : solver_step_names()) names.push_back(name);
  if (all.empty()) throw UsageError(fmt::format("bench sweep: no such case; there are {}", fmt::join(names, ", ")));
  return all;
}

void print_json(const std::vector<SweepFigures>& all, int repeats, const std::string& space) {
  nlohmann::ordered_json j;
  j["benchmark"] = "sweep";
  j["machine"] = machine_text();
  j["space"] = space;
  j["repeats"] = repeats;
  for (const auto& f : all) {
    j["cases"].push_back({{"case", f.name},
                          {"shape", f.shape},
                          {"type", f.type},
                          {"ranks", f.ranks},
                          {"isohalo_mupdates_per_s", f.ours},
                          {"bytes_per_update", f.bytes},
                          {"gb_per_s", f.gb_per_s},
                          {"copy_gb_per_s", f.copied},
                          {"of_copy", f.of_copy},
                          {"with_residual_mupdates_per_s", f.with_residual},
                          {"residual_cost", f.residual_cost},
                          {"same_bits", f.same_bits}});
    if (f.by_hand > 0) j["cases"].back().update({{"hand_written_mupdates_per_s", f.by_hand}, {"ratio", f.ratio}});
    if (f.overlap_cost > 0)
      j["cases"].back().update({{"overlap_cost", f.overlap_cost}, {"overlap_chosen", f.overlap}});
  }
  fmt::print("{}\n", j.dump(2));
}

void print(const std::vector<SweepFigures>& all, const std::string& space) {
  fmt::print("{}, {}\n{:12} {:>15} {:>5} {:>11} {:>11} {:>6} {:>8} {:>7} {:>9} {:>8} {:>13} {:>12}\n",
             machine_text(), space, "case", "cells", "ranks", "isohalo M/s", "by hand M/s", "ratio", "B/update",
             "GB/s", "copy GB/s", "of copy", "residual cost", "overlap cost");
  for (const auto& f : all)
    fmt::print(
        "{:12} {:>15} {:>5} {:>11.0f} {:>11} {:>6} {:>8.0f} {:>7.1f} {:>9.1f} {:>8.2f} {:>13.3f} "
        "{:>12}{}{}\n",
        f.name, f.shape, f.ranks, f.ours, f.by_hand > 0 ? fmt::format("{:.0f}", f.by_hand) : "",
        f.by_hand > 0 ? fmt::format("{:.3f}", f.ratio) : "", f.bytes, f.gb_per_s, f.copied, f.of_copy,
        f.residual_cost, f.overlap_cost > 0 ? fmt::format("{:.3f}", f.overlap_cost) : "",
        f.overlap ? "  (chosen)" : "", f.same_bits ? "" : "  BITS DIFFER");
}

}  // namespace

ExitCode bench_sweep(MPI_Comm user, const BenchSweepOptions& options) {
  const bool on_device = options.space == "device";
  const SweepOrder order{user, options.cases, options.size, options.repeats};
  const auto all = on_device ? measure_device_steps(order) : measure_all(order);
  const std::string space = on_device ? DeviceSpace::name() : SweepSpace::name();
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  if (rank == 0) options.json ? print_json(all, options.repeats, space) : print(all, space);
  const bool right = std::all_of(all.begin(), all.end(), [](const SweepFigures& f) { return f.same_bits; });
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
