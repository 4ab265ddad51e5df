/// `HaloPlan::region`: a loop of several steps per exchange, as a user writes it, has the bits of single steps.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/halo/faces.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// The owned values after so many steps with an exchange every `depth` of them; cells beyond the grid are not read.
/// Ghosts start as NaN, so whatever reads one that has not come is seen.
template <int D>
std::vector<double> after(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth, int steps,
                          int face) {
  const Box<D> mine = face < 0 ? domain.owned() : owned_faces(domain, face);
  const Box<D> all = field_domain(domain, face).global();
  HaloOptions<D> by;
  by.exchange = Exchange::coalesced_packed;
  HaloPlan<D> plan(domain, shape, depth, by);
  const std::int64_t width = 2 * depth;
  std::vector<double> now(static_cast<std::size_t>(adopted_size(mine, width)),
                          std::numeric_limits<double>::quiet_NaN()),
      next(now);
  ArrayRef<double, D> u = adopt(std::span(now), mine, width), v = adopt(std::span(next), mine, width);
  for_each_cell(mine, [&](const Index<D>& i) { u.at(i) = std::sin(static_cast<double>(linear_index(all, i))); });
  for (int step = 0; step < steps; ++step) {
    const int k = step % depth + 1;
    if (k == 1) plan.exchange(on_faces(u, face));
    for (const Box<D>& part : plan.region(k, 0, face))
      for_each_cell(part, [&](const Index<D>& i) {
        double sum = 0.5 * u.at(i);
        for (const auto& o : shape.offsets()) {
          Index<D> x = i;
          bool exists = true;
          for (int j = 0; j < D; ++j) {
            x[j] += o[j];
            exists = exists && (domain.periodic()[j] || (x[j] >= 0 && x[j] < all.high[j]));
          }
          if (exists) sum = sum + 0.1 * u.at(x);
        }
        v.at(i) = sum;
      });
    std::swap(u, v);
  }
  std::vector<double> result;
  for_each_cell(mine, [&](const Index<D>& i) { result.push_back(u.at(i)); });
  return result;
}

template <int D>
void check(const Index<D>& extents) {
  for (const auto& periodic : test::periodicities<D>()) {
    DomainOptions<D> options;
    options.periodic = periodic;
    const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, options);
    for (const auto& [name, shape] : test::few_shapes<D>())
      for (int face = -1; face < 1; ++face) {
        const auto expected = after(domain, shape, 1, 6, face);
        for (const double x : expected) ASSERT_TRUE(std::isfinite(x)) << name;
        for (const int depth : {2, 3}) {
          const auto found = after(domain, shape, depth, 6, face);
          int wrong = 0;
          for (std::size_t k = 0; k < found.size(); ++k)
            wrong += std::bit_cast<std::uint64_t>(found[k]) != std::bit_cast<std::uint64_t>(expected[k]);
          EXPECT_EQ(wrong, 0) << name << ", depth " << depth << ", faces of " << face;
        }
      }
  }
}

TEST(Region, DeepLoopsHaveTheBitsOfSingleSteps1D) {
  check<1>({13});
}
TEST(Region, DeepLoopsHaveTheBitsOfSingleSteps2D) {
  check<2>({11, 9});
}
TEST(Region, DeepLoopsHaveTheBitsOfSingleSteps3D) {
  check<3>({5, 6, 4});
}

TEST(Region, StepsBeyondTheDepthAreRefused) {
  const CartesianDomain<2> domain(MPI_COMM_SELF, {5, 6}, {.periodic = {true, false}});
  const HaloPlan<2> plan(domain, {{StencilShape<2>::moore(2), 3}, {StencilShape<2>::star(1), 1}});
  EXPECT_EQ(plan.region(3), std::vector<Box<2>>{domain.owned()});
  EXPECT_EQ(plan.region(1, 1), std::vector<Box<2>>{domain.owned()});
  EXPECT_EQ(plan.region(1), (std::vector<Box<2>>{{{-4, 0}, {9, 6}}}));
  EXPECT_EQ(plan.region(2, 0, 1), (std::vector<Box<2>>{{{-2, 0}, {7, 7}}}));
  test::expect_refusal("the region of step 0; there are steps 1 to 3", [&] { plan.region(0); });
  test::expect_refusal("the region of step 2; there are steps 1 to 1", [&] { plan.region(2, 1); });
  test::expect_refusal("faces of dimension 2; there are dimensions 0 to 1", [&] { plan.region(1, 0, 2); });
}

}  // namespace
}  // namespace isohalo
