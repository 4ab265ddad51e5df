/// The cases of `bench sweep` that are shipped solvers as input files ask for them.

#include <fmt/format.h>

#include "apps/bench/hand_acoustics.hpp"
#include "apps/bench/hand_rows.hpp"
#include "apps/bench/hand_solver_rows.hpp"
#include "apps/bench/hand_written.hpp"
#include "apps/bench/input_solver.hpp"
#include "apps/bench/sweep_measure.hpp"

namespace isohalo {

namespace {

constexpr const char* kPeriodic = "\"periodic\"";
constexpr const char* kZero = "{fixed = 0.0}";  // what costs the opponent least

/// Times the solver of this input against `make_hand(input)`. `arrays` as in compare_steps; `compared`: fields.
template <class T, int D, class MakeHand>
SweepFigures measure(const SweepOrder& order, const std::string& text, double arrays, const MakeHand& make_hand,
                     std::size_t compared = 1) {
  InputSolver<D> ours(order.comm, text);
  const CartesianDomain<D>& domain = ours.domain();
  auto hand = make_hand(domain, ours.input());
  const auto copy = [&](const AnyArray<D>& array, const auto& to) {
    const auto a = std::get<ArrayRef<T, D>>(array);
    for_each_cell(domain.owned(), [&](const Index<D>& i) { to(i) = a.at(i); });
  };
  const auto fields = ours->fields();
  for (std::size_t f = 0; f < compared; ++f)
    copy(fields[f].array, [&](const Index<D>& i) -> T& { return hand.at(i, f); });
  if constexpr (requires { hand.given(Index<D>{}, 0); }) {
    const auto given = ours->coefficients();
    for (std::size_t k = 0; k < given.size(); ++k)
      copy(given[k].array, [&](const Index<D>& i) -> T& { return hand.given(i, k); });
    if (const auto f = ours->source())
      copy(f->array, [&](const Index<D>& i) -> T& { return hand.given(i, given.size()); });
  }
  if constexpr (requires { hand.start(); }) hand.start();
  return compare_steps<T, D>(domain, *ours, nullptr, hand, compared, arrays, order.repeats);
}

template <int D>
PerDim<double, D> inverse(const Input<D>& in) {
  PerDim<double, D> r;
  for (int j = 0; j < D; ++j) r[j] = 1 / in.grid.spacing[j];
  return r;
}

template <int D>
PerDim<double, D> velocity() {
  PerDim<double, D> v;
  for (int j = 0; j < D; ++j) v[j] = j % 2 ? -0.4 : 0.7;
  return v;
}
template <int D>
std::string advection_text(const char* method) {
  std::string text = fmt::format("solver = {{kind = \"advection\", method = \"{}\", dt = 0.25", method);
  for (int j = 0; j < D; ++j) text += fmt::format(", v{} = {}", j, Config::canonical(velocity<D>()[j]));
  return text + "}\n";
}

template <int D>
SweepFigures upwind(const SweepOrder& order, const std::string& grid) {
  return measure<double, D>(order, grid + advection_text<D>("upwind"), 2, [](const auto& domain, const auto& in) {
    return HandWritten<D, HandUpwindRow<D>>(domain, [&](const Index<D>& s) {
      return HandUpwindRow<D>{velocity<D>(), 0.25, inverse(in), s};
    });
  });
}

template <int D>
SweepFigures upwind_in_field(const SweepOrder& order, const std::string& grid) {
  std::string text = grid + "solver = {kind = \"advection\", method = \"upwind\", dt = 0.25";
  for (int j = 0; j < D; ++j)
    text += fmt::format(", v{} = {{kind = \"random\", seed = {}, low = -0.5, high = 0.5}}", j, j + 1);
  return measure<double, D>(order, text + "}\n", 2 + D, [](const auto& domain, const auto& in) {
    return HandWritten<D, HandUpwindFieldRow<D>, 1, double, D>(domain, [&](const Index<D>& s) {
      return HandUpwindFieldRow<D>{0.25, inverse(in), s};
    });
  });
}

/// Three stages: the first reads one array, the others two each, and each writes one.
template <int D>
SweepFigures upwind3(const SweepOrder& order, const std::string& grid) {
  return measure<double, D>(order, grid + advection_text<D>("upwind3"), 8, [](const auto& domain, const auto& in) {
    return HandStages<D, HandUpwind3Row<D>>(domain, [&](const Index<D>& s) {
      return HandUpwind3Row<D>{velocity<D>(), 0.25, inverse(in), s};
    });
  });
}

template <int D>
SweepFigures kappa(const SweepOrder& order, const std::string& grid) {
  const std::string text =
      grid + "solver = {kind = \"heat\", dt = 0.1, kappa = {kind = \"random\", low = 0.5, high = 1.0}}\n";
  return measure<double, D>(order, text, 3, [](const auto& domain, const auto& in) {
    return HandWritten<D, HandKappaRow<D>, 1, double, 1>(domain, [&](const Index<D>& s) {
      return HandKappaRow<D>{0.1, inverse_squares(in.grid), s};
    });
  });
}

std::string poisson_text(const std::string& method) {
  return "source = {kind = \"random\", seed = 7}\nsolver = {kind = \"poisson\", method = " + method + "}\n";
}

template <int D>
SweepFigures jacobi(const SweepOrder& order, const std::string& grid) {
  return measure<double, D>(
      order, grid + poisson_text("\"jacobi\", omega = 0.9"), 3, [](const auto& domain, const auto& in) {
        return HandWritten<D, HandJacobiRow<D>, 1, double, 1>(
            domain,
            [&](const Index<D>& s) {
              return HandJacobiRow<D>{inverse_squares(in.grid), 0.9, laplace_diagonal(in.grid), s};
            },
            false);
      });
}

template <int D>
SweepFigures chebyshev(const SweepOrder& order, const std::string& grid) {
  return measure<double, D>(
      order, grid + poisson_text("\"chebyshev\", lambda_low = 0.01, lambda_high = 13.0"), 4,
      [](const auto& domain, const auto& in) {
        return HandWritten<D, HandChebyshevRow<D>, 1, double, 1>(
            domain,
            [&](const Index<D>& s) {
              return HandChebyshevRow<D>{inverse_squares(in.grid), ChebyshevSteps(0.01, 13.0), s};
            },
            false);
      });
}

/// Each half step reads u and f and writes u.
template <int D>
SweepFigures red_black(const SweepOrder& order, const std::string& grid) {
  return measure<double, D>(order, grid + poisson_text("\"red_black\", omega = 1.5"), 6,
                            [](const auto& domain, const auto& in) {
                              const auto q = inverse_squares(in.grid);
                              double diagonal = 0;
                              for (int j = 0; j < D; ++j) diagonal = diagonal + 2 * q[j];
                              return HandColours<D, HandRedBlackRow<D>>(domain, [&](const Index<D>& s) {
                                return HandRedBlackRow<D>{q, 1.5 / diagonal, s};
                              });
                            });
}

template <int D>
SweepFigures acoustics(const SweepOrder& order, const std::string& grid) {
  std::string text = grid.substr(0, grid.find("initial.kind")) +
                     "solver = {kind = \"acoustics\", density = 1.25, bulk_modulus = 0.75, dt = 0.5}\n"
                     "initial.p.kind = \"random\"\n";
  for (int j = 0; j < D; ++j) text += fmt::format("initial.v{} = {{kind = \"random\", seed = {}}}\n", j, j + 1);
  return measure<double, D>(
      order, text, 2 * (D + 1),
      [](const auto& domain, const auto& in) {
        PerDim<double, D> a, b;
        for (int j = 0; j < D; ++j)
          a[j] = (0.5 / 1.25) / in.grid.spacing[j], b[j] = (0.5 * 0.75) / in.grid.spacing[j];
        return HandAcoustics<D>(domain, a, b);
      },
      D + 1);
}

SweepFigures life(const SweepOrder& order, const std::string& grid) {
  const std::string text = grid.substr(0, grid.find("initial.kind")) +
                           "domain.type = \"uint8\"\ninitial = {kind = \"random\", low = 0.0, high = 1.0}\n"
                           "solver.kind = \"life\"\n";
  return measure<std::uint8_t, 2>(order, text, 2, [](const auto& domain, const auto&) {
    return HandWritten<2, HandLifeRow, 1, std::uint8_t>(domain,
                                                        [&](const Index<2>& s) { return HandLifeRow{s[0]}; });
  });
}

struct SolverCase {
  std::string name;
  int dimensions;
  const char* side;
  SweepFigures (*run)(const SweepOrder&, const std::string& grid);
};

const std::vector<SolverCase>& solver_cases() {
  static const std::vector<SolverCase> all{{"2d-upwind", 2, kPeriodic, upwind<2>},
                                           {"3d-upwind", 3, kPeriodic, upwind<3>},
                                           {"2d-upwind-v", 2, kPeriodic, upwind_in_field<2>},
                                           {"3d-upwind-v", 3, kPeriodic, upwind_in_field<3>},
                                           {"2d-upwind3", 2, kPeriodic, upwind3<2>},
                                           {"3d-upwind3", 3, kPeriodic, upwind3<3>},
                                           {"2d-kappa", 2, kPeriodic, kappa<2>},
                                           {"3d-kappa", 3, kPeriodic, kappa<3>},
                                           {"2d-jacobi", 2, kZero, jacobi<2>},
                                           {"3d-jacobi", 3, kZero, jacobi<3>},
                                           {"2d-chebyshev", 2, kZero, chebyshev<2>},
                                           {"3d-chebyshev", 3, kZero, chebyshev<3>},
                                           {"2d-red_black", 2, kZero, red_black<2>},
                                           {"3d-red_black", 3, kZero, red_black<3>},
                                           {"2d-acoustics", 2, kPeriodic, acoustics<2>},
                                           {"3d-acoustics", 3, kPeriodic, acoustics<3>},
                                           {"life", 2, kPeriodic, life}};
  return all;
}

}  // namespace

std::vector<std::string> solver_step_names() {
  std::vector<std::string> names;
  for (const SolverCase& c : solver_cases()) names.push_back(c.name);
  return names;
}

std::vector<SweepFigures> measure_solver_steps(const SweepOrder& order) {
  int ranks = 1;
  MPI_Comm_size(order.comm, &ranks);
  std::vector<SweepFigures> figures;
  for (const SolverCase& c : solver_cases()) {
    if (!order.wants(c.name)) continue;
    const std::int64_t usual = c.dimensions == 3 ? 256 : c.name == "life" ? 16384 : 4096;
    const std::int64_t n = order.size > 0 ? order.size : usual;
    figures.push_back(c.run(
        order, c.dimensions == 3 ? grid_text<3>({n, n, n}, ranks, c.side) : grid_text<2>({n, n}, ranks, c.side)));
    figures.back().name = c.name;
    figures.back().type = c.name == "life" ? "uint8" : "float64";
  }
  return figures;
}

}  // namespace isohalo
