/// `isohalo bench cg`: conjugate gradients, reproducible, against a hand-written loop that forms its products of
/// vectors in any order.

#include <algorithm>
#include <cmath>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/copy_rate.hpp"
#include "apps/bench/hand_cg.hpp"
#include "apps/bench/input_solver.hpp"
#include "apps/bench/report.hpp"

namespace isohalo {

namespace {

/// Iterations in which ours tries out ways to sweep.
constexpr int kUntilChosen = 60;
/// Arrays that an iteration must read or write, where no sum is known before a pass ends: u, r, p, u, r; then r, p,
/// p, with the product for the next one.
constexpr double kArrays = 8;
/// Sums in another order leave paths that part slowly.
constexpr double kAlike = 1e-6;

template <int D>
Json measure(MPI_Comm user, const std::string& name, const Index<D>& shape, int repeats) {
  InputSolver<D> ours(user,
                      grid_text<D>(user, shape, kZeroSide, "1", 0) +
                          "initial.kind = \"constant\"\nsource = {kind = \"random\", low = -1.0, high = 1.0}\n"
                          "solver = {kind = \"poisson\", method = \"cg\"}\n");
  const CartesianDomain<D>& domain = ours.domain();
  const Communicator& comm = domain.comm();
  HandCg<D> hand(domain, inverse_squares(ours.input().grid));
  const auto f = std::get<ArrayRef<double, D>>(ours->source()->array);
  for_each_cell(domain.owned(), [&](const Index<D>& i) { hand.source(i) = f.at(i); });
  hand.start();
  CopyRate copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(double)));

  const double before = std::sqrt(hand.rr());
  double rr = ours->advance(kUntilChosen, true);
  hand.advance(kUntilChosen);
  const double once = timed(comm, [&] { rr = ours->advance(2, true), hand.advance(2); }) / 4;
  const auto steps = static_cast<std::int64_t>(std::clamp(0.25 / once, 3.0, 20.0));
  const auto per_step = [&](const auto& work) { return timed(comm, work) / static_cast<double>(steps); };
  enum Way : std::size_t { kOurs, kByHand, kCopying };
  const Turns turns(
      repeats, {[&] { return per_step([&] { rr = ours->advance(steps, true); }); },
                [&] { return per_step([&] { hand.advance(steps); }); }, [&] { return copy.seconds(comm, steps); }});
  const auto u = std::get<ArrayRef<double, D>>(ours->fields()[0].array);
  double most[2] = {0, 0};
  for_each_cell(domain.owned(), [&](const Index<D>& i) {
    most[0] = std::max(most[0], std::abs(u.at(i) - hand.u(i)));
    most[1] = std::max(most[1], std::abs(u.at(i)));
  });
  comm.allreduce(most, 2, MPI_DOUBLE, MPI_MAX);
  // Both relative, of |r| and the largest of u.
  const double of_residual = std::abs(std::sqrt(hand.rr()) - std::sqrt(rr)) / std::sqrt(rr),
               of_u = most[0] / most[1];
  return {{"case", name},
          {"shape", shape_string<D>(shape)},
          {"type", "float64"},
          {"ranks", comm.size()},
          {"isohalo_ms_per_iteration", turns.middle(kOurs) * 1e3},
          {"hand_written_ms_per_iteration", turns.middle(kByHand) * 1e3},
          {"ratio", turns.ratio(kByHand, kOurs)},
          {"bytes_per_cell", kArrays * sizeof(double)},
          {"copy_gb_per_s", static_cast<double>(domain.global().cells()) * 16 / turns.middle(kCopying) / 1e9},
          {"of_copy", 0.5 * kArrays * turns.ratio(kCopying, kOurs)},
          {"iterations", kUntilChosen + 2 + repeats * steps},
          {"residual", std::sqrt(rr) / before},
          {"residual_difference", of_residual},
          {"difference", of_u},
          {"alike", of_residual <= kAlike && of_u <= kAlike}};
}

}  // namespace

ExitCode bench_cg(MPI_Comm user, const BenchStepsOptions& options) {
  const std::int64_t n2 = options.size ? options.size : 4096, n3 = options.size ? options.size : 256;
  Json report = report_of("cg");
  report["repeats"] = options.repeats;
  report["cases"].push_back(measure<2>(user, "2d", {n2, n2}, options.repeats));
  report["cases"].push_back(measure<3>(user, "3d", {n3, n3, n3}, options.repeats));
  return print_report(user, options.json, report, all_true(report["cases"], "alike"));
}

}  // namespace isohalo
