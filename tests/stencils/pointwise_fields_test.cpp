/// Fields of which a solver reads the cell itself alone: their ghosts do not travel where one sweep follows.

#include <gtest/gtest.h>

#include "stencils/cell_solver.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// FitzHugh and Nagumo's: a substance that diffuses and one that stays where it is.
struct Nerve {
  static constexpr auto fields = names("u", "w");
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& w, double dt) const {
    return cells(u() + dt * (laplace(u) + (u() * (1 - u()) - w())), w() + dt * (u() - 0.5 * w()));
  }
};
/// The same in two stages, which read the state at the step's begin.
struct NerveInStages : Nerve {
  static constexpr int stages = 2;
  static constexpr std::array stage_times{0.0, 1.0};
  template <int K, class Cell>
  KOKKOS_FUNCTION auto stage(const Cell& u, const Cell& w, const Cell& u_0, const Cell& w_0, double dt) const {
    const auto [a, b] = (*this)(u, w, dt);
    return K == 0 ? cells(a, b) : cells(0.5 * u_0() + 0.5 * a, 0.5 * w_0() + 0.5 * b);
  }
};
/// The same by leaps over the state a step before.
struct NerveByLeaps : Nerve {
  static constexpr auto before = names("u_1", "w_1");
  template <class Cell>
  KOKKOS_FUNCTION auto operator()(const Cell& u, const Cell& w, const Cell& u_1, const Cell& w_1, double dt) const {
    const auto [a, b] = Nerve::operator()(u, w, dt);
    return cells(u_1() + 2 * (a - u()), w_1() + 2 * (b - w()));
  }
  template <class Cell>
  KOKKOS_FUNCTION auto begin(const Cell& u, const Cell& w, double dt) const {
    return Nerve::operator()(u, w, -dt);
  }
};
template <class S>
struct AtAPoint : S {
  static constexpr auto pointwise = names("w");
};
struct NerveTheWrongWay : Nerve {
  static constexpr auto pointwise = names("u");
};
struct NerveOfNoField : Nerve {
  static constexpr auto pointwise = names("v");
};

TEST(PointwiseFields, AreFieldsOfWhichNoNeighborIsRead) {
  EXPECT_NO_THROW((detail::refuse_other_reads<AtAPoint<Nerve>, 2>({}, "f")));
  test::expect_refusal("solver g reads u at (-1), though it is one of `pointwise`",
                       [] { detail::refuse_other_reads<NerveTheWrongWay, 1>({}, "g"); });
  test::expect_refusal("solver \"h\" has `pointwise` field \"v\", which is none of `fields`",
                       [] { detail::check_names<NerveOfNoField>("h"); });
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
  return in;
}

/// The bits are the same, and the ghosts that one sweep follows are left alone.
template <class S>
void expect_ghosts_stay() {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {13, 19}, {.periodic = {true, false}});
  const auto all_travel = settings<S>();
  const auto one_travels = settings<AtAPoint<S>>();
  const auto arrays = [](const auto& model, int depth) { return model.exchange_load(depth).arrays; };
  const detail::CellModel<AtAPoint<S>, 2> model(one_travels);
  EXPECT_EQ(arrays(detail::CellModel<S, 2>(all_travel), 1), 2);
  EXPECT_EQ(arrays(model, 1), 1);
  EXPECT_EQ(arrays(model, 3), detail::kHasBefore<S> ? 4 : 2);
  for (int depth = 1; depth <= 3; ++depth) {
    const auto field = [](auto& solver, std::size_t f) {
      return std::get<ArrayRef<double, 2>>(solver.fields()[f].array);
    };
    const auto run = [&](auto& solver) {
      for (std::size_t f = 0; f < 2; ++f) {
        const ArrayRef<double, 2> u = field(solver, f);
        for_each_cell(u.allocated(), [&](const Index<2>& i) { u.at(i) = -7; });
        for_each_cell(domain.owned(), [&](const Index<2>& i) {
          u.at(i) = static_cast<double>((linear_index(domain.global(), i) * 7919) % (1009 + 4 * f)) / 1009.0;
        });
      }
      solver.start();
      return solver.advance(6, true);
    };
    detail::CellSolver<S, double, 2> all(all_travel, domain, depth, Exchange::automatic);
    detail::CellSolver<AtAPoint<S>, double, 2> some(one_travels, domain, depth, Exchange::automatic);
    EXPECT_EQ(run(all), run(some));
    for (std::size_t f = 0; f < all.fields().size(); ++f) {
      const ArrayRef<double, 2> a = field(all, f), b = field(some, f);
      for_each_cell(domain.owned(), [&](const Index<2>& i) { ASSERT_EQ(a.at(i), b.at(i)); });
    }
    const ArrayRef<double, 2> w = field(some, 1);  // after an even number of steps the array that was filled
    const Index<2> corner = domain.owned().low;
    EXPECT_EQ(w.at({corner[0] - 1, corner[1]}) == -7, depth == 1);
    if (corner[1] == 0) {  // beside the wall
      EXPECT_EQ(w.at({corner[0], -1}) == -7, depth == 1);
    }
  }
}
TEST(PointwiseFields, KeepTheirGhosts) {
  expect_ghosts_stay<Nerve>();
}
TEST(PointwiseFields, KeepTheirGhostsInStages) {
  expect_ghosts_stay<NerveInStages>();
}
TEST(PointwiseFields, KeepTheirGhostsWithATimeLevelMore) {
  expect_ghosts_stay<NerveByLeaps>();
}

}  // namespace
}  // namespace isohalo
