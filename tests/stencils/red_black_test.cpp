/// red_black: the half steps that a solver takes together have the bits of loops written from docs/model.md.

#include <gtest/gtest.h>

#include <cstring>

#include "stencils/red_black_solver.hpp"
#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

PoissonEquation<2> random_equation(const Index<2>& shape, test::Random& random) {
  PoissonEquation<2> e;
  e.method = PoissonMethod::red_black;
  e.omega = 1.3;
  e.grid.shape = shape;
  for (int j = 0; j < 2; ++j) {
    e.grid.length[j] = 1;
    e.grid.spacing[j] = 1.0 / static_cast<double>(shape[j]);
    const bool periodic = random.in(0, 2) == 0;
    for (auto* side : {&e.grid.boundary.low[j], &e.grid.boundary.high[j]}) {
      side->kind = periodic ? Boundary::periodic : static_cast<Boundary>(random.in(1, 3));
      if (side->kind == Boundary::dirichlet || side->kind == Boundary::fixed) side->value = random.real(-1, 1);
    }
  }
  return e;
}

/// The whole grid, and the cells outside by their rules.
template <class T>
class Plain {
 public:
  explicit Plain(const PoissonEquation<2>& e) : e_(e), q_(e.q<T>()) {}
  std::vector<T> u, f;

  T& at(std::vector<T>& v, const Index<2>& i) const {
    return v[static_cast<std::size_t>(i[0] * e_.grid.shape[1] + i[1])];
  }
  void step() {
    for (std::int64_t colour = 0; colour < 2; ++colour) {
      std::vector<T> old = u;
      for_each_cell(box_of_shape<2>(e_.grid.shape), [&](const Index<2>& i) {
        if ((i[0] + i[1]) % 2 == colour) at(u, i) = at(old, i) + weight(i) * (at(f, i) + laplace(old, i));
      });
    }
  }

 private:
  T laplace(std::vector<T>& v, const Index<2>& i) const {
    const auto part = [&](int j) { return q_[j] * ((near(v, i, j, -1) - T(2) * at(v, i)) + near(v, i, j, 1)); };
    return part(0) + part(1);
  }
  T near(std::vector<T>& v, Index<2> i, int j, int by) const {
    const std::int64_t n = e_.grid.shape[j];
    const BoundaryRule& rule = by < 0 ? e_.grid.boundary.low[j] : e_.grid.boundary.high[j];
    const T own = at(v, i);
    i[j] += by;
    if (i[j] < 0 || i[j] >= n) {
      if (rule.kind == Boundary::fixed) return static_cast<T>(rule.value);
      if (rule.kind == Boundary::neumann) return own;
      if (rule.kind == Boundary::dirichlet) return static_cast<T>(2 * rule.value) - own;
      i[j] = (i[j] + n) % n;
    }
    return at(v, i);
  }
  T weight(const Index<2>& i) const {
    double diagonal = 0;
    for (int j = 0; j < 2; ++j) {
      const std::int64_t n = e_.grid.shape[j];
      const BoundaryRule &low = e_.grid.boundary.low[j], &high = e_.grid.boundary.high[j];
      const auto own = [](const BoundaryRule& r) {
        return r.kind == Boundary::dirichlet ? 1.0 : r.kind == Boundary::neumann ? -1.0 : 0.0;
      };
      double times = low.kind == Boundary::periodic && n == 1 ? 0 : 2;
      if (i[j] == 0) times += own(low);
      if (i[j] == n - 1) times += own(high);
      diagonal = diagonal + times * (1 / (e_.grid.spacing[j] * e_.grid.spacing[j]));
    }
    return static_cast<T>(diagonal > 0 ? e_.omega / diagonal : 0);
  }

  PoissonEquation<2> e_;
  PerDim<T, 2> q_;
};

template <class T>
void check(const Index<2>& shape, const PerDim<int, 2>& grid, int depth, std::uint64_t seed) {
  test::Random random(seed);
  const PoissonEquation<2> equation = random_equation(shape, random);
  if (equation.singular()) return;  // each step ends with a mean
  DomainOptions<2> o;
  o.periodic = equation.grid.boundary.periodic();
  o.process_grid = grid;
  const CartesianDomain<2> domain(MPI_COMM_WORLD, shape, o);
  RedBlackSolver<T, 2> solver(domain, equation, depth, Exchange::coalesced_packed);
  const auto u = [&] { return std::get<ArrayRef<T, 2>>(solver.fields()[0].array); };
  const auto f = std::get<ArrayRef<T, 2>>(solver.source()->array);
  Plain<T> plain(equation);
  CellSum<2> tree(domain);
  for (std::int64_t cell = 0; cell < shape[0] * shape[1]; ++cell) {
    plain.u.push_back(static_cast<T>(random.real(-1, 1)));
    plain.f.push_back(static_cast<T>(random.real(-1, 1)));
  }
  for_each_cell(domain.owned(), [&](const Index<2>& i) {
    u().at(i) = plain.at(plain.u, i);
    f.at(i) = plain.at(plain.f, i);
  });
  solver.start();
  for (int k = 0; k < 5; ++k) {
    const std::int64_t steps = random.in(1, 5);
    const bool change = random.in(0, 1) == 1;
    const double sum = solver.advance(steps, change);
    std::vector<T> before;
    for (std::int64_t s = 0; s < steps; ++s) {
      before = plain.u;
      plain.step();
    }
    if (change) {
      const double expected = tree.reduce([&](const Index<2>& i) {
        const double moved = static_cast<double>(plain.at(plain.u, i)) - static_cast<double>(plain.at(before, i));
        return moved * moved;
      });
      ASSERT_EQ(sum, expected) << shape_string<2>(shape) << " on " << test::ranks() << " ranks, depth " << depth
                               << ", seed " << seed;
    }
    std::int64_t wrong = 0;
    for_each_cell(domain.owned(), [&](const Index<2>& i) {
      wrong += std::memcmp(&u().at(i), &plain.at(plain.u, i), sizeof(T)) != 0;
    });
    ASSERT_EQ(wrong, 0) << shape_string<2>(shape) << " on " << test::ranks() << " ranks, depth " << depth
                        << ", seed " << seed;
  }
}

TEST(RedBlack, HasTheBitsOfPlainLoops) {
  std::uint64_t seed = 1;
  for (const Index<2>& shape : {Index<2>{13, 11}, {8, 9}, {1, 7}, {12, 1}, {40, 66}})
    for (const auto& grid : all_process_grids<2>(shape, test::ranks()))
      for (const int depth : {1, 2, 3})
        for (int k = 0; k < 3; ++k, ++seed)
          seed % 3 ? check<double>(shape, grid, depth, seed) : check<float>(shape, grid, depth, seed);
}

}  // namespace
}  // namespace isohalo
