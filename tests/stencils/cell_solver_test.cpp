/// Solvers by a function of a cell: what is refused before memory is taken, numbers, stages and boundary rules.

#include "stencils/cell_solver.hpp"

#include <gtest/gtest.h>

#include "framework/run/config.hpp"
#include "framework/run/expression.hpp"
#include "framework/run/input.hpp"
#include "stencils/solvers.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// u_t = k laplace(u), and variants that are wrong: of few dimensions, since each one that is added is compiled.
struct Diffusion {
  static constexpr std::array dimensions{2};
  double k = 0.5;
  static constexpr auto fields = names("u");
  static constexpr auto keys = isohalo::keys(key(&Diffusion::k, "k", "length^2 / time", "diffusivity").from(0, 2));
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <class Cell>
  KOKKOS_FUNCTION double operator()(const Cell& u, double dt) const {
    return u() + dt * (k * laplace(u));
  }
};

struct ReadsTooFar : Diffusion {
  template <class Cell>
  KOKKOS_FUNCTION double operator()(const Cell& u, double) const {
    return u.near(0, -2) + u();
  }
};

struct ReadsADiagonal : Diffusion {
  template <class Cell>
  KOKKOS_FUNCTION double operator()(const Cell& u, double) const {
    return u.near(Index<2>{1, 1});
  }
};

/// One that has everything, and variants that are wrong.
struct Everything {
  static constexpr std::array dimensions{2};
  static constexpr auto fields = names("u");
  static constexpr auto before = names("u_before");
  template <int D>
  static constexpr auto coefficients() {
    return std::array{Coefficient{"c", "", "", 1.0}};
  }
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <class Cell, class Given>
  KOKKOS_FUNCTION double operator()(const Cell& u, const Cell& u_before, const Given& given, double dt) const {
    return u_before() + dt * (given[0].near(0, 1) * laplace(u) + laplace(given[0]));
  }
  template <class Cell, class Given>
  KOKKOS_FUNCTION double begin(const Cell& u, const Given&, double) const {
    return u();
  }
};
struct ReadsBeforeTooFar : Everything {
  template <class Cell, class Given>
  KOKKOS_FUNCTION double operator()(const Cell&, const Cell& u_before, const Given&, double) const {
    return u_before.near(0, 1);
  }
};
struct ReadsCoefficientTooFar : Everything {
  template <class Cell, class Given>
  KOKKOS_FUNCTION double operator()(const Cell&, const Cell&, const Given& given, double) const {
    return given[0].near(0, 2);
  }
};
struct BeginsTooFar : Everything {
  template <class Cell, class Given>
  KOKKOS_FUNCTION double begin(const Cell& u, const Given&, double) const {
    return u.near(0, -3);
  }
};
struct SecondStageTooFar : Diffusion {
  static constexpr int stages = 2;
  [[maybe_unused]] static constexpr std::array stage_times{0.0, 1.0};
  template <int K, class Cell>
  KOKKOS_FUNCTION double stage(const Cell& u, const Cell& u_begin, double) const {
    return K == 0 ? u() : u.near(0, 2) + u_begin();
  }
};
struct CoefficientTwice : Everything {
  template <int D>
  static constexpr auto coefficients() {
    return std::array{Coefficient{"mask", "", "", 1.0}};
  }
};

struct KeyTwice : Diffusion {
  static constexpr auto keys = isohalo::keys(key(&Diffusion::k, "k", "", ""), key(&Diffusion::k, "k", "", ""));
};
struct KeyOfAll : Diffusion {
  static constexpr auto keys = isohalo::keys(key(&Diffusion::k, "dt", "", ""));
};
/// What names a file is no physics, and what the digest log says besides digests is no field.
struct KeyOfFiles : Diffusion {
  static constexpr auto keys = isohalo::keys(key(&Diffusion::k, "file", "", ""));
};
struct FieldOfTheLog : Diffusion {
  static constexpr auto fields = names("residual");
};
struct FieldTwice : Diffusion {
  static constexpr auto fields = names("u", "u");
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& v, double) const {
    return cells(u(), v());
  }
};

struct NoWord : Diffusion {
  static constexpr auto keys = isohalo::keys(key(&Diffusion::k, "my key", "", ""));
};
struct LimitOfTwo : Diffusion {
  template <int D>
  double stable_dt(const Grid<D>&, const std::array<double, 2>&) const {
    return 1;
  }
};
struct WeightThatChanges : Diffusion {
  template <int Stage>
  double source_weight(double dt) {
    return dt;
  }
};
struct FieldThatIsAKey : Diffusion {
  static constexpr auto fields = names("low");
};
/// Upwind by what the cell holds: a shape without one side goes unnoticed with values of one sign.
struct ReadsByWhatItReads : Diffusion {
  template <int D>
  StencilShape<D> shape() const {
    Offsets<D> offsets(1);
    offsets[0].fill(0);
    for (int j = 0; j < D; ++j) offsets.push_back(offsets[0]), offsets.back()[static_cast<std::size_t>(j)] = -1;
    return StencilShape<D>::of(offsets);
  }
  template <class Cell>
  KOKKOS_FUNCTION double operator()(const Cell& u, double) const {
    return u() >= 0 ? u() - u.near(0, -1) : u.near(0, 1) - u();
  }
};

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const UsageError& e) {
    return e.what();
  }
  return "none";
}

/// A coefficient that is a number can be read as one that is a field.
TEST(CellSolver, NumbersAreTheSameEverywhere) {
  const CellGeometry<2> geometry{{8, 1}, {4.0, 1.0}, {2.0, 1.0}};
  const detail::ConstantCell<2> c(3.0, geometry);
  EXPECT_EQ(c.near(Index<2>{1, -1}), 3.0);
  EXPECT_EQ(c.near(1, 2), c());
  EXPECT_EQ(laplace(c), 0.0);
}

TEST(CellSolver, RefusesNamesThatAreThereTwice) {
  SolverKinds kinds = shipped_solvers();
  add_solver<Diffusion>(kinds, "diffusion");
  EXPECT_TRUE(!kinds.of<1>().contains("diffusion") && kinds.of<2>().contains("diffusion"));
  EXPECT_NE(
      error_of([&] { add_solver<Diffusion>(kinds, "diffusion"); }).find("two solvers of the name \"diffusion\""),
      std::string::npos);
  EXPECT_NE(error_of([&] { add_solver<Diffusion>(kinds, "heat"); }).find("\"heat\""), std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<KeyTwice>("a"); }).find("the key \"k\" twice"), std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<KeyOfAll>("b"); }).find("the key \"dt\" twice"), std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<KeyOfFiles>("b"); }).find("the key \"file\" twice"),
            std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<FieldOfTheLog>("b"); }).find("the field \"residual\" twice"),
            std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<FieldTwice>("c"); }).find("the field \"u\" twice"),
            std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<CoefficientTwice>("e"); }).find("the key \"mask\" twice"),
            std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<NoWord>("f"); }).find("key of solver f \"my key\": that is no word"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { add_solver<Diffusion>(kinds, "my solver"); }).find("solver \"my solver\": that is no word"),
      std::string::npos);
  EXPECT_NE(error_of([] { detail::check_names<FieldThatIsAKey>("g"); }).find("\"low\" twice, or it is a key"),
            std::string::npos);
}

/// `add_solver` does not compile then.
TEST(CellSolver, SeesFunctionsOfANameThatTakeSomethingElse) {
  EXPECT_FALSE(detail::kNamesStableDt<Diffusion> || detail::kNamesSourceWeight<Diffusion>);
  EXPECT_TRUE(detail::kNamesStableDt<LimitOfTwo> && detail::kNamesSourceWeight<WeightThatChanges>);
  EXPECT_FALSE((detail::kHasLimit<LimitOfTwo, 2> || detail::kSaysSourceWeight<WeightThatChanges, 2>));
}

struct SaysWhatItAdds : SecondStageTooFar {
  template <int K>
  KOKKOS_FUNCTION double source_weight(double dt) const {
    return K == 0 ? dt : 0.5 * dt;
  }
};

TEST(CellSolver, TakesSourcesWhereItIsKnownWhatAStepAdds) {
  EXPECT_TRUE((detail::kTakesSources<Diffusion, 2>));
  EXPECT_FALSE((detail::kTakesSources<SecondStageTooFar, 2>));
  EXPECT_FALSE((detail::kTakesSources<Everything, 2>));
  EXPECT_TRUE((detail::kTakesSources<SaysWhatItAdds, 2>));
  EXPECT_EQ((detail::weight_of_source<1>(SaysWhatItAdds{}, std::array<detail::ConstantCell<1>, 0>{}, 0.5)), 0.25);
  SolverKinds kinds = shipped_solvers();
  add_solver<Diffusion>(kinds, "diffusion");
  add_solver<Everything>(kinds, "everything");
  const auto problem = [&](const std::string& solver, const std::string& source) {
    return error_of([&] {
      Config config("domain = {shape = [6, 5]}\nsolver = {kind = \"" + solver + "\", dt = 0.1}\nsource = {" +
                        source + "}\ninitial = {kind = \"constant\"}\nrun = {steps = 1}\n",
                    "input.toml", {});
      checked_input<2>(config, kinds, "input.toml", 1);
    });
  };
  EXPECT_EQ(problem("diffusion", "kind = \"expression\", expression = \"x*t\""), "none");
  EXPECT_NE(problem("everything", "kind = \"constant\"").find("unknown table source"), std::string::npos);
}

struct WeightReadsTooFar : Everything {
  template <int, class Given>
  KOKKOS_FUNCTION double source_weight(const Given& given, double dt) const {
    return dt * given[0].near(0, -2);
  }
};

TEST(CellSolver, RefusesToReadWhatItsShapeDoesNotHave) {
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<Diffusion, 3>({}, "diffusion"); }), "none");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<ReadsTooFar, 2>({}, "far"); }),
            "solver far reads u at (-2, 0), which its shape in 2 dimensions does not have");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<ReadsADiagonal, 2>({}, "diagonal"); }),
            "solver diagonal reads u at (1, 1), which its shape in 2 dimensions does not have");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<Everything, 2>({}, "all"); }), "none");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<ReadsByWhatItReads, 1>({}, "upwind"); }),
            "solver upwind reads u at (1), which its shape in 1 dimensions does not have");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<ReadsBeforeTooFar, 1>({}, "a"); }),
            "solver a reads the earlier u at (1), of which only the cell itself may be read");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<ReadsCoefficientTooFar, 1>({}, "b"); }),
            "solver b reads c at (2), which its shape in 1 dimensions does not have");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<WeightReadsTooFar, 1>({}, "e"); }),
            "solver e reads c at (-2), which its shape in 1 dimensions does not have");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<BeginsTooFar, 1>({}, "c"); }),
            "solver c reads u at (-3), which its shape in 1 dimensions does not have");
  EXPECT_EQ(error_of([] { detail::refuse_other_reads<SecondStageTooFar, 1>({}, "d"); }),
            "solver d reads u at (2), which its shape in 1 dimensions does not have");
}

/// Heun's method in two stages: half of the old state and half of two steps of Euler.
struct Heun : Diffusion {
  static constexpr int stages = 2;
  static constexpr std::array stage_times{0.0, 1.0};
  template <int K, class Cell>
  KOKKOS_FUNCTION double stage(const Cell& u, const Cell& u_begin, double dt) const {
    const double euler = u() + dt * (k * laplace(u));
    return K == 0 ? euler : 0.5 * u_begin() + 0.5 * euler;
  }
};

template <class S>
detail::CellSettings<S, 2> two_dimensional_settings() {
  detail::CellSettings<S, 2> in;
  in.grid.spacing = {0.1, 0.2};
  in.dt = 1e-3;
  return in;
}
template <class S>
detail::CellSolver<S, double, 2> two_dimensional(const CartesianDomain<2>& domain, int depth) {
  return {two_dimensional_settings<S>(), domain, depth, Exchange::automatic};
}

/// As many numbers as a vector has, and one more.
TEST(CellSolver, NumbersAreRoundedAsFieldsAre) {
  std::array<double, 3> numbers{0.1, 0.7, 1.3};
  for (double& x : numbers) x = detail::rounded<float>(x);
  EXPECT_EQ(numbers, (std::array<double, 3>{0.1f, 0.7f, 1.3f}));
}

TEST(CellSolver, TwoStagesAreWhatTheySay) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {13, 19}, {.periodic = {true, true}});
  const auto value = [&](const Index<2>& i) {
    return static_cast<double>((linear_index(domain.global(), i) * 7919) % 1009) / 1009.0;
  };
  for (int depth = 1; depth <= 3; ++depth) {
    auto heun = two_dimensional<Heun>(domain, depth);
    auto euler = two_dimensional<Diffusion>(domain, 1);
    for_each_cell(domain.owned(), [&](const Index<2>& i) { heun.field().at(i) = value(i); });
    for (int step = 0; step < 4; ++step) {
      for_each_cell(domain.owned(), [&](const Index<2>& i) { euler.field().at(i) = heun.field().at(i); });
      const auto begin = [&] {
        std::vector<double> all;
        for_each_cell(domain.owned(), [&](const Index<2>& i) { all.push_back(heun.field().at(i)); });
        return all;
      }();
      euler.fields_changed();
      euler.advance(2, false);
      heun.advance(1, step % 2 == 1);
      std::size_t next = 0;
      for_each_cell(domain.owned(), [&](const Index<2>& i) {
        ASSERT_EQ(heun.field().at(i), 0.5 * begin[next] + 0.5 * euler.field().at(i));
        ++next;
      });
    }
  }
}

/// A wall that lets heat out: du/dn = rate (value - u), u being that of the outermost cell.
BoundaryKind leak() {
  return {.name = "leak", .parameters = {"rate"}, .outside = [](const OutsideCell& c) {
            return c.mirrored + c.distance * (c.parameters[0] * (c.value - c.mirrored));
          }};
}

TEST(BoundaryKind, RefusesNamesThatAreThereTwiceOrAreNone) {
  SolverKinds kinds = shipped_solvers();
  add_boundary_rule(kinds, leak());
  const auto problem = [&](auto change) {
    BoundaryKind rule = leak();
    rule.name = "other";
    change(rule);
    return error_of([&] { add_boundary_rule(kinds, rule); });
  };
  EXPECT_EQ(error_of([&] { add_boundary_rule(kinds, leak()); }),
            "there are two boundary rules of the name \"leak\": give yours another one");
  EXPECT_NE(problem([](auto& r) { r.name = "robin"; }).find("two boundary rules"), std::string::npos);
  EXPECT_NE(problem([](auto& r) { r.name = "Wet wall"; }).find("is no word"), std::string::npos);
  EXPECT_NE(problem([](auto& r) { r.outside = nullptr; }).find("has no function"), std::string::npos);
  EXPECT_NE(problem([](auto& r) { r.parameters = {"p", "p"}; }).find("the key \"p\" twice"), std::string::npos);
  EXPECT_NE(problem([](auto& r) { r.parameters = {"value"}; }).find("the key \"value\" twice"), std::string::npos);
  EXPECT_EQ(problem([](auto&) {}), "none");
}

/// The input with this rule on the low side of dimension 0.
std::string input_with(const std::string& rule, const std::string& solver) {
  return "domain = {shape = [6, 5], boundary = {low = [" + rule +
         ", \"neumann\"], high = [\"neumann\", \"neumann\"]}}\nsolver = {kind = \"" + solver +
         "\"}\ninitial = {kind = \"constant\"}\nrun = {steps = 1}\n";
}

TEST(BoundaryKind, StandsInInputsAsTheShippedOnesDo) {
  SolverKinds kinds = shipped_solvers();
  add_boundary_rule(kinds, leak());
  Config config(input_with("{leak = {rate = 0.5, value = \"x + t\"}}", "heat"), "input.toml", {});
  const auto in = checked_input<2>(config, kinds, "input.toml", 1);
  const BoundaryRule& rule = in.grid.boundary.low[0];
  ASSERT_TRUE(rule.own && rule.expression);
  EXPECT_TRUE(rule.mirrors());
  EXPECT_EQ(rule.parameters, std::vector<double>{0.5});
  EXPECT_EQ(rule.expression->text(), "x + t");
  EXPECT_EQ(config.effective().at("domain.boundary.low"),
            "[{leak = {rate = 0.5, value = \"x + t\"}}, \"neumann\"]");
  const auto problem = [&](const std::string& text, const std::string& solver) {
    return error_of([&] {
      Config c(input_with(text, solver), "input.toml", {});
      checked_input<2>(c, kinds, "input.toml", 1);
    });
  };
  EXPECT_EQ(problem("{leak = {rate = 0.5}}", "heat"), "none");
  EXPECT_NE(problem("{leak = {}}", "heat").find("rate is missing"), std::string::npos);
  EXPECT_NE(problem("\"leek\"", "heat").find("or {leak = {rate = NUMBER, value = VALUE}}; did you mean {leak = "),
            std::string::npos);
  EXPECT_NE(problem("{leak = {rate = 0.5}}", "poisson").find("poisson has no rule \"leak\""), std::string::npos);
}

}  // namespace
}  // namespace isohalo
