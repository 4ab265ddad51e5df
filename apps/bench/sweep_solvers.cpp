/// The cases of `bench sweep` that are shipped solvers as input files ask for them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "apps/bench/hand_acoustics.hpp"
#include "apps/bench/hand_rows.hpp"
#include "apps/bench/hand_solver_rows.hpp"
#include "apps/bench/hand_written.hpp"
#include "apps/bench/input_solver.hpp"
#include "apps/bench/sweep_measure.hpp"
#include "stencils/solvers.hpp"
#include "stencils/solvers/gray_scott.hpp"
#include "stencils/state_stepper.hpp"

namespace isohalo {

namespace {

enum class Beside { nothing, overlapped };

/// Makes an opponent with the grid and the numbers of an input.
template <class T, int D>
using MakeHand =
    std::function<std::unique_ptr<HandSteps<T, D>>(const CartesianDomain<D>& domain, const Input<D>& input)>;

/// Times the solver of this input against `make_hand(domain, input)`, and beside it one whose steps overlap
/// exchange and sweep. `arrays` as in sweep_row; `compared`: fields.
template <class T, int D>
Json measure(const SweepOrder& order, const std::string& name, const std::string& text, double arrays,
             const MakeHand<T, D>& make_hand, std::size_t compared = 1, Beside beside = Beside::nothing) {
  const SolverKinds kinds = shipped_solvers();
  const auto stepper = [](InputSolver<D> & s) -> auto& {
    return dynamic_cast<StateStepper<T, D>&>(*s);
  };
  const bool overlaps = beside == Beside::overlapped && !order.depth;
  InputSolver<D> ours(order.comm, text, kinds);
  std::optional<InputSolver<D>> overlapped;
  bool chosen = false;
  if (overlaps) {
    InputSolver<D> automatic(order.comm, text, kinds);  // on its own
    while (!stepper(automatic).overlap().decided()) automatic->advance(1, false);
    chosen = stepper(automatic).overlap().way() == 1;
    overlapped.emplace(order.comm, text, kinds);
    stepper(*overlapped).overlap_by(true), stepper(ours).overlap_by(false);
  }
  if (order.tile.size() == D) {
    Index<D> tile{};
    std::copy(order.tile.begin(), order.tile.end(), tile.begin());
    ours->sweep_by({tile, {}});
  }
  const CartesianDomain<D>& domain = ours.domain();
  const auto hand = make_hand(domain, ours.input());
  const auto copy = [&](const AnyArray<D>& array, const auto& to) {
    const auto a = std::get<ArrayRef<T, D>>(array);
    for_each_cell(domain.owned(), [&](const Index<D>& i) { to(i) = a.at(i); });
  };
  const auto fields = ours->fields();
  for (std::size_t f = 0; f < compared; ++f)
    copy(fields[f].array, [&](const Index<D>& i) -> T& { return hand->at(i, f); });
  if (fields.size() > compared)
    copy(fields[compared].array, [&](const Index<D>& i) -> T& { return hand->before(i); });
  const auto given = ours->coefficients();
  for (std::size_t k = 0; k < given.size(); ++k)
    copy(given[k].array, [&](const Index<D>& i) -> T& { return hand->given(i, k); });
  if (const auto f = ours->source())
    copy(f->array, [&](const Index<D>& i) -> T& { return hand->given(i, given.size()); });
  hand->start();
  Json row = compare_steps<T, D>(name, domain, *ours, overlaps ? &**overlapped : nullptr, *hand, compared, arrays,
                                 order.repeats, order.depth.value_or(1));
  if (overlaps) row["overlap_chosen"] = chosen;
  if (order.depth) {
    row["depth"] = *order.depth;
    row["sweeps"] = ours->sweeps();
  }
  return row;
}

/// A case, but for its solver.
template <int D>
struct SolverCase {
  const SweepOrder& order;
  std::string name;
  Index<D> shape;
  std::string grid(const char* side) const {
    return grid_text<D>(order.comm, shape, side, std::to_string(order.depth.value_or(1)));
  }
};

/// Against `Hand`, whose rows `make_row(input, stride)` makes. `solver`: lines of the input.
template <class Hand, class T = double, int D, class MakeRow>
Json against(const SolverCase<D>& c, const char* side, const std::string& solver, double arrays,
             const MakeRow& make_row, std::size_t compared = 1, Beside beside = Beside::nothing) {
  const auto make_hand = [&](const CartesianDomain<D>& domain, const Input<D>& in) {
    return std::make_unique<Hand>(domain, [&](const Index<D>& s) { return make_row(in, s); });
  };
  return measure<T, D>(c.order, c.name, c.grid(side) + solver, arrays, make_hand, compared, beside);
}
/// With K constant arrays.
template <int D, class Row, std::size_t K = 1>
using HandGiven = HandWritten<D, Row, 1, double, K>;

template <int D>
PerDim<double, D> inverse(const Input<D>& in) {
  PerDim<double, D> r;
  for (int j = 0; j < D; ++j) r[j] = 1 / in.grid.spacing[j];
  return r;
}

template <int D>
Json heat(const SolverCase<D>& c) {
  const auto row = [](const Input<D>& in, const Index<D>& s) {
    PerDim<double, D> k;
    for (int j = 0; j < D; ++j) k[j] = 0.1 / (in.grid.spacing[j] * in.grid.spacing[j]);
    return HandHeatRow<D>{k, s};
  };
  return against<HandWritten<D, HandHeatRow<D>>>(c, kPeriodicSide, std::string(kRandomField) + kHeat, 2, row, 1,
                                                 Beside::overlapped);
}

/// Weighted neighbors, as an input file lists them.
template <class HandRow, int D>
Json weighted(const SolverCase<D>& c, const Offsets<D>& offsets) {
  const auto row = [&](const Input<D>&, const Index<D>& s) {
    return HandRow(offsets, stencil_weights(offsets.size()), s);
  };
  return against<HandWritten<D, HandRow>>(c, kPeriodicSide, kRandomField + stencil_text<D>(offsets), 2, row, 1,
                                          Beside::overlapped);
}
template <int D>
Json box(const SolverCase<D>& c) {
  using Row = std::conditional_t<D == 2, HandListRow<2, 9, 1>, HandBoxRow>;
  return weighted<Row>(c, moore<D>(1, Self::include));
}
template <int Radius, int D>
Json star(const SolverCase<D>& c) {
  return weighted<HandListRow<D, 2 * D * Radius + 1, Radius>>(c, isohalo::star<D>(Radius, Self::include));
}
Json odd_list(const SolverCase<2>& c) {  // that no rule gives
  return weighted<HandListRow<2, 7, 3>>(c, {{-3, 1}, {-2, -2}, {-1, 3}, {0, 0}, {0, 2}, {1, -3}, {3, -1}});
}

template <int D>
Json wave(const SolverCase<D>& c) {
  const std::string text = "solver = {kind = \"wave\", c = 0.9, sigma = 0.1, dt = 0.5}\n";
  const auto row = [](const Input<D>& in, const Index<D>& s) {
    return HandWaveRow<D>{inverse_squares(in.grid), 0.9, 0.1, 0.5, s};
  };
  return against<HandWritten<D, HandWaveRow<D>>>(c, kPeriodicSide, kRandomField + text, 3, row, 1,
                                                 Beside::overlapped);
}

Json gray_scott(const SolverCase<2>& c) {
  const auto row = [](const Input<2>& in, const Index<2>& s) {
    const GrayScott g;
    return HandGrayScottRow{inverse_squares(in.grid), g.Du, g.Dv, g.F, g.k, 0.1, s};
  };
  return against<HandWritten<2, HandGrayScottRow, 2>>(
      c, kPeriodicSide, random_text({"u", "v"}) + "solver = {kind = \"gray_scott\", dt = 0.1}\n", 4, row, 2,
      Beside::overlapped);
}

template <int D>
PerDim<double, D> velocity() {
  PerDim<double, D> v;
  for (int j = 0; j < D; ++j) v[j] = j % 2 ? -0.4 : 0.7;
  return v;
}
/// `of(j)`: component j of the velocity.
template <int D, class Of>
std::string advection_text(const char* method, const Of& of) {
  std::string text =
      fmt::format("{}solver = {{kind = \"advection\", method = \"{}\", dt = 0.25", kRandomField, method);
  for (int j = 0; j < D; ++j) text += fmt::format(", v{} = {}", j, of(j));
  return text + "}\n";
}
template <int D>
std::string constant_advection_text(const char* method) {
  return advection_text<D>(method, [](int j) { return Config::canonical(velocity<D>()[j]); });
}

template <int D>
Json upwind(const SolverCase<D>& c) {
  return against<HandWritten<D, HandUpwindRow<D>>>(c, kPeriodicSide, constant_advection_text<D>("upwind"), 2,
                                                   [](const Input<D>& in, const Index<D>& s) {
                                                     return HandUpwindRow<D>{velocity<D>(), 0.25, inverse(in), s};
                                                   });
}

template <int D>
Json upwind_in_field(const SolverCase<D>& c) {
  const auto component = [](int j) {
    return fmt::format("{{kind = \"random\", seed = {}, low = -0.5, high = 0.5}}", j + 1);
  };
  return against<HandGiven<D, HandUpwindFieldRow<D>, D>>(c, kPeriodicSide, advection_text<D>("upwind", component),
                                                         2 + D, [](const Input<D>& in, const Index<D>& s) {
                                                           return HandUpwindFieldRow<D>{0.25, inverse(in), s};
                                                         });
}

/// Three stages: the first reads one array, the others two each, and each writes one.
template <int D>
Json upwind3(const SolverCase<D>& c) {
  return against<HandGiven<D, HandUpwind3Row<D>>>(c, kPeriodicSide, constant_advection_text<D>("upwind3"), 8,
                                                  [](const Input<D>& in, const Index<D>& s) {
                                                    return HandUpwind3Row<D>{velocity<D>(), 0.25, inverse(in), s};
                                                  });
}

template <int D>
Json kappa(const SolverCase<D>& c) {
  const std::string text =
      "solver = {kind = \"heat\", dt = 0.1, kappa = {kind = \"random\", low = 0.5, high = 1.0}}\n";
  return against<HandGiven<D, HandKappaRow<D>>>(c, kPeriodicSide, kRandomField + text, 3,
                                                [](const Input<D>& in, const Index<D>& s) {
                                                  return HandKappaRow<D>{0.1, inverse_squares(in.grid), s};
                                                });
}

/// Outside cells are 0, which costs the opponent least.
template <class Hand, int D, class MakeRow>
Json poisson(const SolverCase<D>& c, const std::string& method, double arrays, const MakeRow& make_row) {
  const std::string text = "source = {kind = \"random\", seed = 7}\nsolver = {kind = \"poisson\", method = ";
  return against<Hand>(c, kZeroSide, kRandomField + text + method + "}\n", arrays, make_row);
}

template <int D>
Json jacobi(const SolverCase<D>& c) {
  return poisson<HandGiven<D, HandJacobiRow<D>>>(
      c, "\"jacobi\", omega = 0.9", 3, [](const Input<D>& in, const Index<D>& s) {
        return HandJacobiRow<D>{inverse_squares(in.grid), 0.9, laplace_diagonal(in.grid), s};
      });
}

template <int D>
Json chebyshev(const SolverCase<D>& c) {
  return poisson<HandGiven<D, HandChebyshevRow<D>>>(
      c, "\"chebyshev\", lambda_low = 0.01, lambda_high = 13.0", 4, [](const Input<D>& in, const Index<D>& s) {
        return HandChebyshevRow<D>{inverse_squares(in.grid), ChebyshevSteps(0.01, 13.0), s};
      });
}

/// Each half step reads u and f and writes u.
template <int D>
Json red_black(const SolverCase<D>& c) {
  return poisson<HandGiven<D, HandRedBlackRow<D>>>(
      c, "\"red_black\", omega = 1.5", 6, [](const Input<D>& in, const Index<D>& s) {
        return HandRedBlackRow<D>{inverse_squares(in.grid), 1.5 / laplace_diagonal(in.grid), s};
      });
}

template <int D>
Json acoustics(const SolverCase<D>& c) {
  std::vector<std::string> fields{"p"};
  for (int j = 0; j < D; ++j) fields.push_back(fmt::format("v{}", j));
  const auto make_hand = [](const CartesianDomain<D>& domain, const Input<D>& in) {
    PerDim<double, D> a, b;
    for (int j = 0; j < D; ++j) a[j] = (0.5 / 1.25) / in.grid.spacing[j], b[j] = (0.5 * 0.75) / in.grid.spacing[j];
    return std::make_unique<HandAcoustics<D>>(domain, a, b);
  };
  return measure<double, D>(c.order, c.name,
                            c.grid(kPeriodicSide) + random_text(fields) +
                                "solver = {kind = \"acoustics\", density = 1.25, bulk_modulus = 0.75, dt = 0.5}\n",
                            2 * (D + 1), make_hand, D + 1);
}

Json life(const SolverCase<2>& c) {
  return against<HandWritten<2, HandLifeRow, 1, std::uint8_t>, std::uint8_t>(
      c, kPeriodicSide, std::string(kLife) + kRandomField, 2,
      [](const Input<2>&, const Index<2>& s) { return HandLifeRow{s[0]}; });
}

}  // namespace

void add_solver_steps(SweepOrder& order) {
  const auto add = [&](const auto& c, const auto& run) {
    order.cases.add(c.name, [&order, c, run] { order.rows.push_back(run(c)); });
  };
  const std::int64_t n = order.cells(4096), n3 = order.cells(256), n4 = order.cells(64), bytes = order.cells(16384);
  const auto plane = [&](const std::string& name) { return SolverCase<2>{order, "2d-" + name, {n, n}}; };
  const auto cube = [&](const std::string& name) { return SolverCase<3>{order, "3d-" + name, {n3, n3, n3}}; };
  const auto add_both = [&](const std::string& name, const auto& run) {
    add(plane(name), run), add(cube(name), run);
  };
  add(plane("5pt"), heat<2>);
  add(cube("7pt"), heat<3>);
  add(plane("9pt"), box<2>);
  add(cube("27pt"), box<3>);
  add_both("star2", [](const auto& c) { return star<2>(c); });
  add(cube("star4"), star<4, 3>);
  add(plane("list"), odd_list);
  add(SolverCase<1>{order, "1d-3pt", {n * n}}, heat<1>);
  add(SolverCase<4>{order, "4d-9pt", {n4, n4, n4, n4}}, heat<4>);
  add_both("wave", [](const auto& c) { return wave(c); });
  add(SolverCase<2>{order, "gray_scott", {n, order.size ? n : n / 2}}, gray_scott);
  add_both("upwind", [](const auto& c) { return upwind(c); });
  add_both("upwind-v", [](const auto& c) { return upwind_in_field(c); });
  add_both("upwind3", [](const auto& c) { return upwind3(c); });
  add_both("kappa", [](const auto& c) { return kappa(c); });
  add_both("jacobi", [](const auto& c) { return jacobi(c); });
  add_both("chebyshev", [](const auto& c) { return chebyshev(c); });
  add_both("red_black", [](const auto& c) { return red_black(c); });
  add_both("acoustics", [](const auto& c) { return acoustics(c); });
  add(SolverCase<2>{order, "life", {bytes, bytes}}, life);
}

void measure_deep_steps(SweepOrder& order, const std::set<int>& depths) {
  const std::int64_t n2 = order.cells(8192), n3 = order.cells(384);
  std::set<std::size_t> dimensions;  // of the chosen cases
  const auto add = [&](const auto& c, const auto& run) {
    if (order.cases.wants(c.name)) dimensions.insert(c.shape.size());
    order.cases.add(c.name, [&order, &depths, c, run] {
      if (!order.tile.empty() && order.tile.size() != c.shape.size()) return;
      for (const int depth : depths) order.depth = depth, order.rows.push_back(run(c));
    });
  };
  add(SolverCase<2>{order, "2d-5pt", {n2, n2}}, heat<2>);
  add(SolverCase<3>{order, "3d-7pt", {n3, n3, n3}}, heat<3>);
  add(SolverCase<2>{order, "2d-9pt", {n2, n2}}, box<2>);
  add(SolverCase<3>{order, "3d-27pt", {n3, n3, n3}}, box<3>);
  add(SolverCase<2>{order, "2d-acoustics", {n2, n2}}, [](const auto& c) { return acoustics(c); });
  add(SolverCase<3>{order, "3d-acoustics", {n3, n3, n3}}, [](const auto& c) { return acoustics(c); });
  order.cases.measure("bench temporal");
  if (order.rows.empty())
    throw UsageError(fmt::format("bench temporal: --tile {} is {}-D, the cases are {}-D: give as many extents",
                                 fmt::join(order.tile, ","), order.tile.size(), fmt::join(dimensions, "-D or ")));
}

}  // namespace isohalo
