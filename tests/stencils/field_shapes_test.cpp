/// Fields of which a solver reads less than of others: where one sweep follows, that is what travels.

#include <gtest/gtest.h>

#include "apps/bench/input_solver.hpp"
#include "framework/run/plan.hpp"
#include "stencils/cell_solver.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// u diffuses with two cells on either side, v with one, w stays where it is.
struct Nerve {
  static constexpr auto fields = names("u", "v", "w");
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(2);
  }
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& v, const Cell& w, double dt) const {
    double wide = 0;
    for (int j = 0; j < Cell::dimensions; ++j) wide = wide + (u.near(j, -2) - u()) + (u.near(j, 2) - u());
    return cells(u() + dt * (wide + (u() * (1 - u()) - w())), v() + dt * (laplace(v) + u()),
                 w() + dt * (u() - 0.5 * w()));
  }
};
/// The same in two stages, which read the state at the step's begin.
struct NerveInStages : Nerve {
  static constexpr int stages = 2;
  static constexpr std::array stage_times{0.0, 1.0};
  template <int K, class Cell>
  KOKKOS_FUNCTION auto stage(const Cell& u, const Cell& v, const Cell& w, const Cell& u_0, const Cell& v_0,
                             const Cell& w_0, double dt) const {
    const auto [a, b, c] = (*this)(u, v, w, dt);
    return K == 0 ? cells(a, b, c) : cells(0.5 * u_0() + 0.5 * a, 0.5 * v_0() + 0.5 * b, 0.5 * w_0() + 0.5 * c);
  }
};
/// The same by leaps over the state a step before.
struct NerveByLeaps : Nerve {
  static constexpr auto before = names("u_1", "v_1", "w_1");
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& v, const Cell& w, const Cell& u_1, const Cell& v_1,
                                  const Cell& w_1, double dt) const {
    const auto [a, b, c] = Nerve::operator()(u, v, w, dt);
    return cells(u_1() + 2 * (a - u()), v_1() + 2 * (b - v()), w_1() + 2 * (c - w()));
  }
  template <class Cell>
  KOKKOS_FUNCTION auto begin(const Cell& u, const Cell& v, const Cell& w, double dt) const {
    return Nerve::operator()(u, v, w, -dt);
  }
};
/// The same with a coefficient whose neighbors are read, two cells away.
struct NerveInField : Nerve {
  template <int D>
  static constexpr auto coefficients() {
    return std::array{Coefficient{"k", "1", "of what flows", 1.0}};
  }
  template <class Cell, class Given>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& v, const Cell& w, const std::array<Given, 1>& k,
                                  double dt) const {
    const auto [a, b, c] = Nerve::operator()(u, v, w, dt);
    return cells(a + dt * (k[0].near(0, -2) - k[0].near(0, 2)), b, c);
  }
};
/// Says what is read of each field.
template <class S>
struct FieldByField : S {
  template <int D>
  StencilShape<D> shape_of(std::string_view field) const {
    return StencilShape<D>::star(field == "u" ? 2 : field == "v" ? 1 : 0);
  }
};

template <int U, int V>
struct Wrong : Nerve {
  template <int D>
  StencilShape<D> shape_of(std::string_view field) const {
    return StencilShape<D>::star(field == "u" ? U : field == "v" ? V : 0);
  }
};
/// Reads a neighbor where a value is large.
struct OnlyAtTimes {
  static constexpr auto fields = names("u");
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <class Cell>
  double operator()(const Cell& u, double) const {
    if (u() > 2.5) return u.near(0, 2);
    return u();
  }
};
TEST(ShapesOfFields, HaveWhatIsRead) {
  EXPECT_NO_THROW((detail::refuse_other_reads<FieldByField<Nerve>, 2>({}, "f")));
  test::expect_refusal("solver o reads u at (2), which its shape in 1 dimensions does not have",
                       [] { detail::refuse_other_reads<OnlyAtTimes, 1>({}, "o"); });
  EXPECT_NO_THROW((detail::refuse_other_reads<FieldByField<NerveInStages>, 3>({}, "f")));
  test::expect_refusal("solver g reads v at (-1), which shape_of(\"v\") in 1 dimensions does not have",
                       [] { detail::refuse_other_reads<Wrong<2, 0>, 1>({}, "g"); });
  test::expect_refusal("solver h: shape_of(\"u\") has (-3), which its shape in 1 dimensions does not have",
                       [] { detail::refuse_other_reads<Wrong<3, 1>, 1>({}, "h"); });
}

/// Round in one dimension, between walls in the other.
template <class S>
detail::CellSettings<S, 2> settings() {
  detail::CellSettings<S, 2> in;
  in.grid.spacing = {0.1, 0.2};
  in.grid.boundary.low[1].kind = Boundary::dirichlet;
  in.grid.boundary.low[1].value = 0.25;
  in.grid.boundary.high[1].kind = Boundary::neumann;
  in.dt = 1e-3;
  in.fields_given = detail::kCoefficients<S, 2> > 0;
  return in;
}

/// So many arrays travel by a shape of this radius.
int arrays_of(const ExchangeLoad<2>& load, int radius) {
  int n = 0;
  for (const auto& [need, count] : load.arrays) n += need.shape.radius() == radius ? count : 0;
  return n;
}

/// The bits are the same, and ghosts that nobody reads are left alone.
template <class S>
void expect_ghosts_stay() {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {13, 19}, {.periodic = {true, false}});
  const auto all_alike = settings<S>();
  const auto each = settings<FieldByField<S>>();
  const detail::CellModel<S, 2> plain(all_alike);
  const detail::CellModel<FieldByField<S>, 2> model(each);
  EXPECT_EQ(arrays_of(plain.exchange_load(1), 2), 3);
  EXPECT_EQ(arrays_of(model.exchange_load(1), 2), 1);
  EXPECT_EQ(arrays_of(model.exchange_load(1), 1), 1);
  EXPECT_EQ(model.exchange_load(1).arrays.size(), 2u);
  EXPECT_EQ(arrays_of(model.exchange_load(3), 2), detail::kHasBefore<S> ? 6 : 3);
  for (int depth = 1; depth <= 3; ++depth) {
    const auto array = [](const FieldHandle<2>& field) { return std::get<ArrayRef<double, 2>>(field.array); };
    const auto run = [&](auto& solver) {
      for (const auto& c : solver.coefficients())
        for_each_cell(domain.owned(), [&](const Index<2>& i) {
          array(c).at(i) = static_cast<double>((linear_index(domain.global(), i) * 31) % 101) / 101.0;
        });
      for (std::size_t f = 0; f < 3; ++f) {
        const ArrayRef<double, 2> u = array(solver.fields()[f]);
        for_each_cell(u.allocated(), [&](const Index<2>& i) { u.at(i) = -7; });
        for_each_cell(domain.owned(), [&](const Index<2>& i) {
          u.at(i) = static_cast<double>((linear_index(domain.global(), i) * 7919) % (1009 + 4 * f)) / 1009.0;
        });
      }
      solver.start();
      return solver.advance(6, true);
    };
    detail::CellSolver<S, double, 2> all(all_alike, domain, depth, Exchange::automatic);
    detail::CellSolver<FieldByField<S>, double, 2> some(each, domain, depth, Exchange::automatic);
    const double change = run(all);
    const auto expect_same = [&](auto& solver) {
      EXPECT_EQ(run(solver), change);
      const auto one = all.fields(), other = solver.fields();
      for (std::size_t f = 0; f < one.size(); ++f) {
        const ArrayRef<double, 2> a = array(one[f]), b = array(other[f]);
        for_each_cell(domain.owned(), [&](const Index<2>& i) { ASSERT_EQ(a.at(i), b.at(i)) << f; });
      }
    };
    expect_same(some);
    if constexpr (kOnDevice<double, 2>) {
      using Stepper = DeviceStepper<double, 2, DeviceSpace>;
      detail::CellSolver<FieldByField<S>, double, 2, Stepper> on_device(each, domain, depth, Exchange::automatic);
      expect_same(on_device);
    }
    const Index<2> corner = domain.owned().low;  // after an even number of steps the arrays that were filled
    for (int f = 0; f < 3; ++f)
      for (int layer = 1; layer <= 2; ++layer) {
        const ArrayRef<double, 2> u = array(some.fields()[static_cast<std::size_t>(f)]);
        EXPECT_EQ(u.at({corner[0] - layer, corner[1]}) == -7, depth == 1 && layer > 2 - f) << f << " " << layer;
        if (corner[1] == 0 && f == 2) {  // beside the wall
          EXPECT_EQ(u.at({corner[0], -layer}) == -7, depth == 1);
        }
      }
  }
}
TEST(ShapesOfFields, SayWhatTravels) {
  expect_ghosts_stay<Nerve>();
}
TEST(ShapesOfFields, SayWhatTravelsInStages) {
  expect_ghosts_stay<NerveInStages>();
}
TEST(ShapesOfFields, SayWhatTravelsWithATimeLevelMore) {
  expect_ghosts_stay<NerveByLeaps>();
}
TEST(ShapesOfFields, AreNotThoseOfCoefficients) {
  expect_ghosts_stay<NerveInField>();
}

/// Of which no neighbor is read.
struct Spots {
  static constexpr auto fields = names("u");
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(0);
  }
  template <int D>
  StencilShape<D> shape_of(std::string_view) const {
    return StencilShape<D>::star(0);
  }
  template <class Cell>
  KOKKOS_FUNCTION double operator()(const Cell& u, double dt) const {
    return u() + dt * u();
  }
};
TEST(ShapesOfFields, MayAllBeTheCellItself) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {13, 19}, {.periodic = {true, true}});
  detail::CellSettings<Spots, 2> in;
  in.grid.spacing = {1, 1};
  in.dt = 1;
  for (int depth = 1; depth <= 2; ++depth) {
    detail::CellSolver<Spots, double, 2> solver(in, domain, depth, Exchange::automatic);
    const auto u = std::get<ArrayRef<double, 2>>(solver.fields()[0].array);
    for_each_cell(domain.owned(), [&](const Index<2>& i) { u.at(i) = 1; });
    solver.start();
    EXPECT_EQ(solver.advance(2, true), 4 * 13 * 19);
    for_each_cell(domain.owned(), [&](const Index<2>& i) { ASSERT_EQ(u.at(i), 4); });
  }
}

/// Of one field neighbors in one direction are read, of the other in the other: lists without a name, of which none
/// holds the other, and a name together.
struct Crossing {
  static constexpr std::array dimensions{2};
  static constexpr auto fields = names("a", "b");
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& a, const Cell& b, double dt) const {
    return cells(a() + dt * (a.near(0, -1) - b.near(1, 1)), b() + dt * (b.near(1, -1) - a.near(0, 1)));
  }
};
struct CrossingByField : Crossing {
  template <int D>
  StencilShape<D> shape_of(std::string_view field) const {
    Index<D> back{}, on{};
    on[field == "b"] = 1, back[field == "b"] = -1;
    return StencilShape<D>::of({back, on});
  }
};
std::string crossing(const std::string& kind, const std::string& more) {
  return "domain = {shape = [288, 288], boundary = {low = [\"periodic\", \"periodic\"], high = [\"periodic\", "
         "\"periodic\"]}}\nrun.steps = 1\nsolver = {kind = \"" +
         kind + "\", dt = 0.1}\n" + random_text({"a", "b"}) + more;
}

TEST(ShapesOfFields, MayBeOfAnyKind) {
  SolverKinds kinds;
  add_solver<Crossing>(kinds, "crossing");
  add_solver<CrossingByField>(kinds, "by_field");
  const std::string depths[] = {"1", "3", "\"auto\""};
  for (const std::string& depth : depths) {
    const std::string more = "parallel.halo_depth = " + depth + "\n";
    InputSolver<2> plain(MPI_COMM_WORLD, crossing("crossing", more), kinds);
    InputSolver<2> solver(MPI_COMM_WORLD, crossing("by_field", more), kinds);
    for (int k = 0; k < 40; ++k) ASSERT_EQ(plain->advance(k + 1, true), solver->advance(k + 1, true)) << depth;
  }
  // Blocks of 24 x 96 cells: rows come from two ranks and columns from two others.
  const std::string coalesced = "parallel.exchange = \"coalesced_packed\"\nparallel.halo_depth = 1\n";
  const InputSolver<2> in(MPI_COMM_SELF, crossing("by_field", coalesced), kinds);
  const std::string plan = plan_text(in.input(), 36);
  EXPECT_NE(plan.find("receives 4 messages, 1.9 KiB of 2 fields"), std::string::npos) << plan;
  const auto traffic = traffic_by_pattern(in.input(), 36);
  ASSERT_EQ(traffic.size(), 2u);  // no slabs
  for (const PatternTraffic& t : traffic) {
    EXPECT_EQ(t.traffic.messages_sent(7), 4) << t.pattern;
    EXPECT_EQ(t.traffic.bytes_sent(7), 2 * (24 + 96) * 8) << t.pattern;
  }
  // Slabs bring what several steps need, since that is a star.
  const std::string slabs = "parallel.exchange = \"slabs\"\nparallel.halo_depth = ";
  EXPECT_NO_THROW(InputSolver<2>(MPI_COMM_WORLD, crossing("by_field", slabs + "2\n"), kinds));
  test::expect_refusal(
      "parallel.exchange = \"slabs\": with one step per exchange a field of this solver travels by a list", [&] {
        Config config(crossing("by_field", slabs + "1\n"), "input", {});
        checked_topology(checked_input<2>(config, kinds, "input", 1));
      });
}

}  // namespace
}  // namespace isohalo
