/// `isohalo bench cg`: conjugate gradients, reproducible, against a hand-written loop that forms its products of
/// vectors in any order.

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/copy_rate.hpp"
#include "apps/bench/hand_grid.hpp"
#include "apps/bench/hand_solver_rows.hpp"
#include "apps/bench/input_solver.hpp"
#include "apps/common/report.hpp"
#include "datatypes/independent.hpp"

namespace isohalo {

namespace {

/// Iterations in which ours tries out ways to sweep.
constexpr int kUntilChosen = 60;
/// Arrays that an iteration must read or write, where no sum is known before a pass ends: u, r, p, u, r; then r, p,
/// p, with the product for the next one.
constexpr double kArrays = 8;
/// Sums in another order leave paths that part slowly.
constexpr double kAlike = 1e-6;

/// The opponent, -laplace(u) = f from u = 0, outside cells 0: as a careful programmer writes it. Three passes an
/// iteration over nine arrays: A p is formed anew where it is needed, which from memory is faster than to write it
/// and read it again.
template <int D>
class HandCg {
 public:
  HandCg(const CartesianDomain<D>& domain, const PerDim<double, D>& q)
      : comm_(domain.comm().get()), grid_(domain, 1), q_(q) {}

  double& source(const Index<D>& i) { return r_.ref().data[grid_.place(i)]; }
  /// Before the first iteration, the source in place.
  void start() {
    rr_ = all(sum_of([&](std::int64_t k, std::int64_t n, Lanes& lanes) {
      double *const r = r_.ref().data + k, *const p = p_.ref().data + k;
      for (std::int64_t x = 0; x < n; ++x) p[x] = r[x];
      add(lanes, n, [r](std::int64_t x) { return r[x] * r[x]; });
    }));
  }
  double u(const Index<D>& i) { return u_.ref().data[grid_.place(i)]; }
  /// (r, r).
  double rr() const { return rr_; }

  void advance(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s) step();
  }

 private:
  /// Sums in progress, as many as hide the latency of an addition behind vectors of any width.
  static constexpr std::int64_t kLanes = 32;
  using Lanes = std::array<double, kLanes>;

  template <class Value>
  static void add(Lanes& lanes, std::int64_t n, const Value& value) {
    Lanes sum = lanes;
    std::int64_t x = 0;
    for (; x + kLanes <= n; x += kLanes)
      for (std::int64_t k = 0; k < kLanes; ++k) sum[static_cast<std::size_t>(k)] += value(x + k);
    for (; x < n; ++x) sum[0] += value(x);
    lanes = sum;
  }
  /// row(k, n, lanes) for all rows; the sum of the lanes.
  template <class Row>
  double sum_of(const Row& row) const {
    Lanes lanes{};
    grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>&) { row(k, n, lanes); });
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
  }
  double all(double sum) const {
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, comm_);
    return sum;
  }

  void step() {
    double *const p_all = p_.ref().data, *const u_all = u_.ref().data, *const r_all = r_.ref().data;
    grid_.exchange(p_all);
    const PerDim<double, D> q = q_;
    const Index<D> s = grid_.stride();
    const double curvature = all(sum_of([&](std::int64_t k, std::int64_t n, Lanes& lanes) {
      const double* const p = p_all + k;
      add(lanes, n, [=](std::int64_t x) { return p[x] * -hand_laplace<D>(p + x, q, s); });
    }));
    const double alpha = rr_ / curvature;
    const double rr = all(sum_of([&](std::int64_t k, std::int64_t n, Lanes& lanes) {
      double *const r = r_all + k, *const u = u_all + k;
      const double* const p = p_all + k;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) {
        u[x] = u[x] + alpha * p[x];
        r[x] = r[x] - alpha * -hand_laplace<D>(p + x, q, s);
      }
      add(lanes, n, [=](std::int64_t x) { return r[x] * r[x]; });
    }));
    const double beta = rr / rr_;
    rr_ = rr;
    grid_.for_each_row([&](std::int64_t k, std::int64_t n, const Index<D>&) {
      double* const p = p_all + k;
      const double* const r = r_all + k;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) p[x] = r[x] + beta * p[x];
    });
  }

  MPI_Comm comm_;
  HandGrid<double, D> grid_;
  PerDim<double, D> q_;
  typename HandGrid<double, D>::Array u_ = grid_.array(), r_ = grid_.array(), p_ = grid_.array();
  double rr_ = 0;
};

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
