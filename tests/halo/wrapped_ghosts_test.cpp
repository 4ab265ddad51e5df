/// Small grids that lie many times over in the ghosts, and are right by every way.

#include <gtest/gtest.h>

#include "framework/halo/faces.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::Memory;

/// Depths that go round the grid several times, with and without ends in some dimensions.
template <int D>
void check(const Index<D>& extents, int depth, const Offsets<D>& far) {
  int turn = 0;
  for (const auto& shape : {StencilShape<D>::moore(1), StencilShape<D>::star(1), StencilShape<D>::von_neumann(2),
                            StencilShape<D>::of(far)})
    for (const auto& periodic : test::periodicities<D>()) {
      const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, {.periodic = periodic});
      const auto needed = test::needed_on(domain, shape, depth);
      for (const Exchange e : test::exchanges(shape))
        EXPECT_EQ((test::exchange_once<double>(domain, shape, depth, static_cast<Memory>(turn++ % test::kMemories),
                                               e, needed)),
                  0)
            << shape.text() << " by " << exchange_name(e);
    }
}

TEST(WrappedGhosts, AllWaysIn1D) {
  check<1>({7}, 60, {{3}, {-2}});
}
TEST(WrappedGhosts, AllWaysIn2D) {
  check<2>({4, 3}, 13, {{-1, 2}, {3, 0}});
}
TEST(WrappedGhosts, AllWaysIn3D) {
  check<3>({3, 2, 4}, 5, {{1, 1, -2}, {0, -1, 3}});
}
TEST(WrappedGhosts, AllWaysIn4D) {
  check<4>({2, 3, 2, 2}, 3, {{1, 0, 1, -1}, {-1, 2, 0, 0}});
}

TEST(WrappedGhosts, OnFaces) {
  for (const auto& periodic : test::periodicities<2>()) {
    const CartesianDomain<2> domain(MPI_COMM_WORLD, {4, 3}, {.periodic = periodic});
    HaloPlan<2> plan(domain, StencilShape<2>::moore(1), 11);
    test::FaceField<2> cells(domain, -1, 11), low(domain, 0, 11), high(domain, 1, 11);
    plan.exchange(cells.u, on_faces(low.u, 0), on_faces(high.u, 1));
    for (const auto* f : {&cells, &low, &high})
      EXPECT_EQ(f->wrong([](const Index<2>& away) { return std::max(away[0], away[1]) <= 11; }), 0);
  }
}

/// Needs that one step after the other finds, with mirrors; and by layers. Beside an array that repeats nothing.
TEST(WrappedGhosts, NearMirrors) {
  DomainOptions<2> o;
  o.periodic = {false, true};
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {4, 5}, o);
  HaloOptions<2> options;
  options.mirror_low[0] = options.mirror_high[0] = true;
  const BoundaryTopology<2> around{domain.global(), domain.periodic(), options.mirror_low, options.mirror_high};
  const auto needed = [&](const HaloNeed<2>& n) {
    return test::needed_by_definition(domain.owned(), n.shape.offsets(), n.depth, around);
  };
  const HaloNeed<2> near{StencilShape<2>::star(1), 1};
  int turn = 0;
  for (const HaloNeed<2>& far :
       {HaloNeed<2>{StencilShape<2>::of({{-2, 7}, {1, -8}}), 3}, HaloNeed<2>{StencilShape<2>::moore(1), 20}}) {
    for (const Exchange e : test::exchanges(far.shape)) {
      options.exchange = e;
      HaloPlan<2> plan(domain, {far, near}, options);
      const auto memory = static_cast<Memory>(turn++ % test::kMemories);
      const test::TestField<double, 2> a(domain, plan, 0, memory, 0);
      const test::TestField<std::uint8_t, 2> b(domain, plan, 1, memory, 1);
      plan.exchange(a.ref(), b.ref());
      EXPECT_EQ(a.wrong(needed(far)) + b.wrong(needed(near)), 0)
          << exchange_name(e) << ", layout " << static_cast<int>(memory);
    }
  }
}

}  // namespace
}  // namespace isohalo
