/// `fill_outside_cells` against the recursive definition of docs/model.md, on any ranks, layouts and rules.

#include "framework/halo/outside_cells.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "framework/halo/halo_plan.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

template <class T, int D>
T inside_value(const Box<D>& grid, const Index<D>& i) {
  return static_cast<T>(0.1) * static_cast<T>(linear_index(grid, i) + 3);
}

/// value(i) of docs/model.md; `face`: of a field on the faces of that dimension.
template <class T, int D>
T by_definition(const Box<D>& grid, const BoundaryRules<D>& rules, Index<D> i, int face) {
  for (int j = 0; j < D; ++j) {
    const std::int64_t n = grid.high[j];
    if (i[j] >= 0 && i[j] < n) continue;
    if (j == face && rules.low[j].kind != Boundary::periodic) {
      const std::int64_t beyond = i[j] < 0 ? -i[j] : i[j] - (n - 1);
      const BoundaryRule& rule = i[j] < 0 ? rules.low[j] : rules.high[j];
      if (rule.kind == Boundary::fixed) return static_cast<T>(rule.value);
      i[j] = i[j] < 0 ? beyond : n - 1 - beyond;
      const T m = by_definition<T>(grid, rules, i, face);
      if (rule.kind == Boundary::dirichlet) return static_cast<T>(T(2) * static_cast<T>(rule.value) - m);
      const double h = rules.length[j] / static_cast<double>(n - 1);
      return rule.has_gradient()
                 ? static_cast<T>(m + static_cast<T>((2 * static_cast<double>(beyond) * h) * rule.value))
                 : m;
    }
    const BoundaryRule& rule = i[j] < 0 ? rules.low[j] : rules.high[j];
    const T v = static_cast<T>(rule.value);
    if (rule.kind == Boundary::fixed) return v;
    const std::int64_t layer = i[j] < 0 ? -1 - i[j] : i[j] - n;
    i[j] = rule.kind == Boundary::periodic ? (i[j] % n + n) % n : i[j] < 0 ? -1 - i[j] : 2 * n - 1 - i[j];
    const T m = by_definition<T>(grid, rules, i, face);
    const double delta = static_cast<double>(2 * layer + 1) * (rules.length[j] / static_cast<double>(n));
    if (rule.kind == Boundary::robin) {
      const double a = 0.5 * rule.parameters[0], b = rule.parameters[1] / delta;
      return static_cast<T>(static_cast<T>(rule.value / (a + b)) - static_cast<T>((a - b) / (a + b)) * m);
    }
    if (rule.has_gradient()) return static_cast<T>(m + static_cast<T>(delta * rule.value));
    return rule.kind == Boundary::dirichlet ? static_cast<T>(T(2) * v - m) : m;
  }
  for (const auto& [rule, side] :
       {std::pair{&rules.low, std::int64_t{0}}, std::pair{&rules.high, std::int64_t{-1}}})
    if (face >= 0 && i[face] == (side < 0 ? grid.high[face] - 1 : 0) &&
        ((*rule)[face].kind == Boundary::dirichlet || (*rule)[face].kind == Boundary::fixed))
      return static_cast<T>((*rule)[face].value);
  return inside_value<T>(grid, i);
}

template <class T, int D>
void check(const Index<D>& extents, std::int64_t width, int face = -1) {
  BoundaryRule sides[] = {{Boundary::neumann, 0},
                          {Boundary::dirichlet, 1.3},
                          {Boundary::fixed, -0.7},
                          {Boundary::neumann, 0.4},
                          {Boundary::robin, 0.9}};
  sides[4].parameters = {0.5, 2.0};
  for (int c = 0; c < 10; ++c) {
    BoundaryRules<D> rules;
    for (int j = 0; j < D; ++j) {
      rules.length[j] = 1.5 + j;
      if ((c + j) % 4 != 3) rules.low[j] = sides[(c + j) % 5], rules.high[j] = sides[(2 * c + j + 1) % 5];
    }
    for (auto* side : {&rules.low, &rules.high})
      if (face >= 0 && (*side)[face].kind == Boundary::robin) (*side)[face] = sides[c % 4];
    DomainOptions<D> options;
    options.periodic = rules.periodic();
    const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, options), of_field = field_domain(domain, face);
    HaloOptions<D> by;
    by.exchange = Exchange::coalesced_packed;
    HaloPlan<D> plan(domain, StencilShape<D>::moore(static_cast<int>(width)), 1, by);
    std::vector<T> memory(static_cast<std::size_t>(adopted_size(of_field.owned(), width, 2)), T(-99));
    const ArrayRef<T, D> u = adopt(std::span(memory), of_field.owned(), width, 2);
    for_each_cell(u.owned, [&](const Index<D>& i) { u.at(i) = inside_value<T>(of_field.global(), i); });
    plan.exchange(on_faces(u, face));
    if (face < 0)
      fill_outside_cells(u, domain, rules);
    else
      fill_outside_faces(u, face, domain, rules);
    int wrong = 0;
    for_each_cell(u.allocated(), [&](const Index<D>& i) {
      const T right = by_definition<T>(of_field.global(), rules, i, face);
      wrong += std::memcmp(&u.at(i), &right, sizeof right) != 0;
    });
    EXPECT_EQ(wrong, 0) << D << " dimensions, case " << c << ", face " << face;
  }
}

TEST(OutsideCells, AreThoseOfTheDefinition) {
  check<double, 1>({13}, 3);
  check<double, 2>({9, 7}, 1);
  check<float, 2>({9, 8}, 3);  // wider than some blocks
  check<double, 3>({5, 6, 7}, 2);
  check<double, 4>({3, 4, 3, 4}, 1);
}

TEST(OutsideCells, AreThoseOfTheDefinitionOnFaces) {
  check<double, 1>({13}, 3, 0);
  for (int face = 0; face < 2; ++face) check<double, 2>({9, 7}, 1, face), check<float, 2>({9, 8}, 2, face);
  for (int face = 0; face < 3; ++face) check<double, 3>({5, 6, 7}, 2, face);
  check<double, 4>({3, 4, 3, 4}, 1, 2);
}

TEST(OutsideCells, WhatDoesNotFitIsRefused) {
  const CartesianDomain<2> domain(MPI_COMM_SELF, {5, 6}, {.periodic = {true, false}});
  std::vector<double> memory(static_cast<std::size_t>(adopted_size(domain.owned(), 1)));
  const auto u = adopt(std::span(memory), domain.owned(), 1);
  BoundaryRules<2> rules;
  test::expect_refusal("dimension 1 of the domain is not periodic, its rules for the low side say otherwise",
                       [&] { fill_outside_cells(u, domain, rules); });
  rules.low[1] = {Boundary::neumann, 0};
  test::expect_refusal("the high side", [&] { fill_outside_cells(u, domain, rules); });
  rules.high[1] = {Boundary::fixed, 1};
  EXPECT_NO_THROW(fill_outside_cells(u, domain, rules));
  for (const BoundaryRule& unknown : {BoundaryRule(Boundary::neumann, 0.5), BoundaryRule(Boundary::robin, 1)}) {
    auto more = rules;
    more.high[1] = unknown;
    test::expect_refusal("a rule of dimension 1 depends on the width of the cells: give the length of the grid",
                         [&] { fill_outside_cells(u, domain, more); });
  }
  auto unfinished = rules;
  unfinished.high[1] = BoundaryRule(Boundary::robin, 1), unfinished.length[1] = 1;
  test::expect_refusal("is robin: give its two numbers", [&] { fill_outside_cells(u, domain, unfinished); });
  unfinished.high[1] = BoundaryRule(Boundary::own, 1);
  test::expect_refusal("is one of your own, but has no function",
                       [&] { fill_outside_cells(u, domain, unfinished); });
  BoundaryKind leak{.name = "leak", .parameters = {"rate"}};
  const auto with = [&](const BoundaryKind& kind, std::vector<double> parameters) {
    unfinished.high[1].own = std::make_shared<const BoundaryKind>(kind);
    unfinished.high[1].parameters = std::move(parameters);
    fill_outside_cells(u, domain, unfinished);
  };
  test::expect_refusal("is one of your own, but has no function", [&] { with(leak, {0.5}); });
  leak.outside = [](const OutsideCell& c) { return c.parameters[0] * c.mirrored; };
  leak.problem = [](std::span<const double> p) { return p[0] < 0 ? "rate is negative" : ""; };
  test::expect_refusal("is leak: it has 0 parameters, its kind has 1", [&] { with(leak, {}); });
  test::expect_refusal("is leak: rate is negative", [&] { with(leak, {-1}); });
  EXPECT_NO_THROW(with(leak, {0.5}));
  unfinished.high[1] = BoundaryRule(Boundary::robin, 1);
  unfinished.high[1].parameters = {0, 0};
  test::expect_refusal("is robin: a and b must not be negative, and not both 0",
                       [&] { fill_outside_cells(u, domain, unfinished); });
  test::expect_refusal("the array holds (0, 0) to (5, 6), this rank owns (0, 0) to (5, 7)",
                       [&] { fill_outside_faces(u, 1, domain, rules); });
  auto on_faces_of_1 = u;
  ++on_faces_of_1.owned.high[1], --on_faces_of_1.ghost_high[1];
  EXPECT_NO_THROW(fill_outside_faces(on_faces_of_1, 1, domain, rules));
  auto robin = rules;
  robin.low[1] = BoundaryRule(Boundary::robin, 1);
  test::expect_refusal("fill_outside_faces: a rule of dimension 1, whose faces the array is on, is robin",
                       [&] { fill_outside_faces(on_faces_of_1, 1, domain, robin); });
  test::expect_refusal("faces of dimension 2", [&] { fill_outside_faces(u, 2, domain, rules); });
  test::expect_refusal("dimension -1; the first one is 0", [&] { fill_outside_faces(u, -1, domain, rules); });
  auto bad = u;
  bad.data = nullptr;
  test::expect_refusal("the array is NULL", [&] { fill_outside_cells(bad, domain, rules); });
  bad = u, bad.stride = {1, 1};
  test::expect_refusal("fill_outside_cells: the strides (1, 1) of array 0 let cells overlap",
                       [&] { fill_outside_cells(bad, domain, rules); });
  bad = u, bad.ghost_low[0] = -3;
  test::expect_refusal("a negative number of ghost layers in dimension 0",
                       [&] { fill_outside_cells(bad, domain, rules); });
  auto other = u;
  --other.owned.high[0];
  test::expect_refusal("the array holds (0, 0) to (4, 6), this rank owns (0, 0) to (5, 6)",
                       [&] { fill_outside_cells(other, domain, rules); });
}

}  // namespace
}  // namespace isohalo
