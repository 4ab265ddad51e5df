/// A solver of one's own with fields on faces: heat that flows with a delay, and a fuel that it comes from. Against
/// plain loops over the whole grid, bit for bit; and what is refused.

#include <gtest/gtest.h>

#include <optional>

#include "apps/bench/input_solver.hpp"
#include "framework/halo/faces.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/reduce/tree_reducer.hpp"
#include "stencils/cell_solver.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// u_t = -div(q) + r f, f_t = -r f, s q_t = -k grad(u) - q. Source: Cattaneo 1958, "A form of heat-conduction
/// equations which eliminates the paradox of instantaneous propagation".
struct DelayedHeat {
  double rate = 0.5, delay = 2;

  static constexpr std::array dimensions{2};
  static constexpr auto fields = names("u", "fuel");
  static constexpr auto faces = "q";
  static constexpr auto keys = isohalo::keys(key(&DelayedHeat::rate, "rate", "1 / time", "r"),
                                             key(&DelayedHeat::delay, "delay", "time", "s"));
  template <int D>
  static constexpr auto coefficients() {
    return std::array{Coefficient{"k", "length^2 / time", "conductivity", 0.75}.above(0, 2)};
  }
  template <int D>
  double stable_dt(const Grid<D>& grid, const std::array<Extremes, 1>& k) const {
    return grid.spacing[0] * std::sqrt(delay / k[0].largest) / 2;
  }
  template <class Face, class Cells, class Given>
  KOKKOS_FUNCTION double face(const Face& q, const Cells& u, const Cells&, const Given& given, double dt) const {
    const double k = 0.5 * (given[0].below() + given[0].above());
    return q() - (dt / delay) * ((k * (u.above() - u.below())) / q.spacing() + q());
  }
  template <class Cell, class Faces, class Given>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& fuel, const Faces& q, const Given&, double dt) const {
    const double burnt = dt * (rate * fuel());
    const double away = sum_over_dimensions<Cell::dimensions>([&](int j) {
      const auto& along = q[static_cast<std::size_t>(j)];
      return (along.above() - along.below()) / along.spacing();
    });
    return cells((u() - dt * away) + burnt, fuel() - burnt);
  }
};

constexpr Index<2> kShape{11, 17};
constexpr double kLength[2] = {3.3, 1.7}, kDt = 0.01;

SolverKinds own_kinds() {
  SolverKinds kinds;
  add_solver<DelayedHeat>(kinds, "delayed_heat");
  return kinds;
}
std::string input_text(const std::string& k, int depth, const std::string& more = "") {
  return fmt::format(
             "domain.shape = [11, 17]\ndomain.length = [3.3, 1.7]\nparallel.halo_depth = {}\nrun.steps = 1\n{}\n"
             "domain.boundary.low = [\"periodic\", {{dirichlet = 0.25}}]\n"
             "domain.boundary.high = [\"periodic\", \"neumann\"]\n"
             "domain.boundary.q1.low = [\"periodic\", \"neumann\"]\n"
             "domain.boundary.q1.high = [\"periodic\", {{fixed = -0.5}}]\n"
             "solver.kind = \"delayed_heat\"\nsolver.rate = 0.3\nsolver.dt = 0.01\n{}\n",
             depth, more, k) +
         random_text({"u", "fuel", "q0", "q1"});
}

/// The whole grid, on each rank: a dimension that is round and one between walls.
template <class T>
struct Reference {
  using Field = std::vector<T>;
  Field u, fuel, q0, q1, k;
  Field mask{};                  ///< 0 everywhere where there is none
  std::optional<Field> added{};  ///< to the fuel; then to u what kSources says
  bool mirrors = false;
  std::int64_t steps = 0;

  static std::size_t at(std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>((i + kShape[0]) % kShape[0] * kShape[1] + j);
  }
  static std::size_t at_1(std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(i * (kShape[1] + 1) + j);
  }
  static double flow(double q, double u_below, double u_above, double k_below, double k_above, double h) {
    const double mean = 0.5 * (k_below + k_above);
    return q - (kDt / 2.0) * ((mean * (u_above - u_below)) / h + q);
  }
  /// A face between these cells; `u_below` in the lower one, which may be outside, where all else is mirrored.
  void let_flow(T& q, double u_below, std::size_t below, std::size_t above, double h) const {
    const bool no_below = mask[below] != 0, no_above = mask[above] != 0;
    if (no_below && no_above) return;
    q = static_cast<T>(flow(q, no_below && mirrors ? u[above] : u_below, no_above && mirrors ? u_below : u[above],
                            k[below], k[above], h));
  }
  void step() {
    const double h0 = kLength[0] / static_cast<double>(kShape[0]), h1 = kLength[1] / static_cast<double>(kShape[1]);
    const double time = static_cast<double>(steps++) * kDt + 0.5 * kDt;
    for (std::int64_t i = 0; i < kShape[0]; ++i)
      for (std::int64_t j = 0; j < kShape[1]; ++j)
        let_flow(q0[at(i, j)], u[at(i - 1, j)], at(i - 1, j), at(i, j), h0);
    for (std::int64_t i = 0; i < kShape[0]; ++i) {
      for (std::int64_t j = 0; j < kShape[1]; ++j) {
        const double u_below = j > 0 ? u[at(i, j - 1)] : static_cast<T>(2 * 0.25 - u[at(i, 0)]);
        let_flow(q1[at_1(i, j)], u_below, at(i, std::max<std::int64_t>(j - 1, 0)), at(i, j), h1);
      }
      q1[at_1(i, kShape[1])] = -0.5;
    }
    for (std::int64_t i = 0; i < kShape[0]; ++i)
      for (std::int64_t j = 0; j < kShape[1]; ++j) {
        if (mask[at(i, j)] != 0) continue;
        const double old = u[at(i, j)], f = fuel[at(i, j)], x1 = (static_cast<double>(j) + 0.5) * h1;
        const double burnt = kDt * (0.3 * f);
        const double away =
            (double{q0[at(i + 1, j)]} - q0[at(i, j)]) / h0 + (double{q1[at_1(i, j + 1)]} - q1[at_1(i, j)]) / h1;
        double warm = (old - kDt * away) + burnt, left = f - burnt;
        if (added) {
          warm = warm + kDt * static_cast<T>((200.0 * time) * x1 - 1.0);
          left = left + kDt * (*added)[at(i, j)];
        }
        u[at(i, j)] = static_cast<T>(warm);
        fuel[at(i, j)] = static_cast<T>(left);
      }
  }
};

/// Of all ranks: the owned places of an array, each zero where it is another rank's.
template <class T>
std::vector<T> whole(const ArrayRef<T, 2>& a, const Index<2>& shape) {
  std::vector<T> all(static_cast<std::size_t>(shape[0] * shape[1]));
  for_each_cell(a.owned,
                [&](const Index<2>& i) { all[static_cast<std::size_t>(i[0] * shape[1] + i[1])] = a.at(i); });
  Communicator::of(MPI_COMM_WORLD)
      .allreduce(all.data(), static_cast<int>(all.size()), sizeof(T) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT,
                 MPI_SUM);
  return all;
}
template <class T>
ArrayRef<T, 2> array_of(const FieldHandle<2>& field) {
  return std::get<ArrayRef<T, 2>>(field.array);
}

template <class T>
void expect_as_reference(const std::string& text) {
  InputSolver<2> solver(MPI_COMM_WORLD, text, own_kinds());
  const Index<2> on_walls{kShape[0], kShape[1] + 1};
  const auto begin = solver->fields();
  ASSERT_EQ(begin.size(), 4u);
  EXPECT_EQ(begin[1].face, -1);
  EXPECT_EQ(begin[3].face, 1);
  Reference<T> r{whole(array_of<T>(begin[0]), kShape),
                 whole(array_of<T>(begin[1]), kShape),
                 whole(array_of<T>(begin[2]), kShape),
                 whole(array_of<T>(begin[3]), on_walls),
                 {}};
  r.k.assign(r.u.size(), 0.75);
  r.mask.assign(r.u.size(), 0);
  r.mirrors = text.find("mirror") != std::string::npos;
  for (const FieldHandle<2>& given : solver->coefficients()) {
    auto values = whole(array_of<T>(given), kShape);
    if (given.name == "k") r.k = values;
    if (given.name == "fuel") r.added = values;
    if (given.name == "mask") r.mask = values;
  }
  EXPECT_EQ(r.added.has_value(), text.find("source") != std::string::npos);
  for (int k = 0; k < 7; ++k) {
    const Reference<T> before = r;
    r.step();
    const double change = solver->advance(1, true);
    const auto square = [](double now, double then) { return (now - then) * (now - then); };
    const auto sum = [&](int face, const auto& term) {
      TreeReducer<double, 2, Sum> tree(field_domain(solver.domain(), face));
      return tree.reduce([&](const Index<2>& i) {
        return term(face == 1 ? Reference<T>::at_1(i[0], i[1]) : Reference<T>::at(i[0], i[1]));
      });
    };
    const double in_cells =
        sum(-1, [&](std::size_t i) { return square(r.u[i], before.u[i]) + square(r.fuel[i], before.fuel[i]); });
    const double on_0 = sum(0, [&](std::size_t i) { return square(r.q0[i], before.q0[i]); });
    const double on_1 = sum(1, [&](std::size_t i) { return square(r.q1[i], before.q1[i]); });
    EXPECT_EQ(change, (in_cells + on_0) + on_1) << text;
  }
  solver->advance(6, false);
  for (int k = 0; k < 6; ++k) r.step();
  const auto end = solver->fields();
  EXPECT_EQ(whole(array_of<T>(end[0]), kShape), r.u) << text;
  EXPECT_EQ(whole(array_of<T>(end[1]), kShape), r.fuel) << text;
  EXPECT_EQ(whole(array_of<T>(end[2]), kShape), r.q0) << text;
  EXPECT_EQ(whole(array_of<T>(end[3]), on_walls), r.q1) << text;
}

void expect_as_reference(const std::string& solver, const std::string& more) {
  const std::string on_device = "\nparallel.space = \"device\"", single = "\ndomain.type = \"float32\"";
  for (const auto& [depth, how] : {std::pair(1, ""), std::pair(3, "\nparallel.tile = [2, 5]"), std::pair(4, "")}) {
    expect_as_reference<double>(input_text(solver, depth, more + how));
    expect_as_reference<float>(input_text(solver, depth, more + how + single));
    if (kOnDevice<double, 2>) expect_as_reference<double>(input_text(solver, depth, more + on_device));
    if (kOnDevice<float, 2>) expect_as_reference<float>(input_text(solver, depth, more + on_device + single));
  }
}

const char* const kField = "solver.k = {kind = \"random\", low = 0.5, high = 1.0}\n";
const char* const kSources =
    "source.u.kind = \"expression\"\nsource.u.expression = \"200*t*x1 - 1\"\nsource.fuel.kind = \"random\"\n";
const char* const kMask = "solver.mask = {kind = \"expression\", expression = \"sin(7*x0)*cos(9*x1) > 0.3\"";

TEST(OwnFaces, HaveTheBitsOfPlainLoops) {
  for (const char* const k : {"", kField}) expect_as_reference(k, "");
}
TEST(OwnFaces, HaveSources) {
  for (const char* const k : {"", kField}) expect_as_reference(k, kSources);
}
TEST(OwnFaces, HeedMasks) {
  for (const char* const rule : {"}", ", rule = \"mirror\"}"})
    expect_as_reference(kField, kMask + std::string(rule));
  expect_as_reference("", std::string(kSources) + kMask + ", rule = \"mirror\"}");
}

/// Names, and limits of the step, that a solver with faces, or any, may have.
struct ThirdFlow : DelayedHeat {
  static constexpr auto fields = names("u", "q2");  // no face of two dimensions
};
struct FlowTwice : DelayedHeat {
  static constexpr auto fields = names("u", "q1");
};
struct ByAnyLargest : DelayedHeat {
  template <int D>
  auto stable_dt(const Grid<D>&, const auto& k) const {
    return 1 / k[0];
  }
};

TEST(OwnFaces, HaveNamesOfTheDimensionsThereAre) {
  EXPECT_NO_THROW(detail::check_names<ThirdFlow>("f"));
  test::expect_refusal("solver \"g\" has the field \"q1\" twice", [] { detail::check_names<FlowTwice>("g"); });
}
TEST(OwnFaces, MayTakeTheLargestAloneOfCoefficients) {
  EXPECT_TRUE((detail::kLimitByExtremes<DelayedHeat, 2>));
  EXPECT_FALSE((detail::kLimitByExtremes<ByAnyLargest, 2>));
  EXPECT_EQ((detail::limit_of<ByAnyLargest, 2>({}, {}, {{{-4, 1}}})), 0.25);
}
TEST(Coefficients, KeepBothTheirLimits) {
  const Coefficient a = Coefficient{"a", "", "", 1.0}.above(0, 2),
                    b = Coefficient{"b", "", "", 1.0}.above(0).from(0);
  EXPECT_TRUE(a.above_min);
  EXPECT_EQ(a.max, 2);
  EXPECT_FALSE(b.above_min);
  EXPECT_EQ(detail::allowed(a), "values above 0 and at most 2");
}

TEST(OwnFaces, AreCheckedAsOthers) {
  const auto refused = [](const std::string& what, const std::string& more) {
    test::expect_refusal(what, [&] {
      InputSolver<2> solver(MPI_COMM_WORLD, input_text(more, 1), own_kinds());
      solver.input().model->check_coefficients(solver.domain());
    });
  };
  refused("solver.k", "solver.k = 0");
  refused("must give values above 0 and at most 2", "solver.k = {kind = \"constant\", value = 3}");
  refused("must give values above 0 and at most 2", "solver.k = {kind = \"constant\", value = 0}");
  refused("source.q0", "source.q0.kind = \"constant\"");  // of fields in cells alone
}

}  // namespace
}  // namespace isohalo
