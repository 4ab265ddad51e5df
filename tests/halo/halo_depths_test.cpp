/// Halos many times deeper than the blocks and the grid, in 3-D and 4-D: every periodicity, shape, depth and
/// transport.

#include <gtest/gtest.h>

#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::Memory;

template <int D>
void check_depths(const Index<D>& extents, int first, int last) {
  int turn = 0;
  for (const auto& periodic : test::periodicities<D>()) {
    DomainOptions<D> o;
    o.periodic = periodic;
    const auto grids = all_process_grids<D>(extents, test::ranks());
    for (const auto& [name, shape] : test::shapes<D>())
      for (int depth = first; depth <= last; ++depth) {
        o.process_grid = grids[static_cast<std::size_t>(turn) % grids.size()];
        const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, o);
        const detail::NeededCells<D> needed(domain, shape, depth);
        for (const Exchange e : test::exchanges(shape)) {
          HaloOptions<D> options;
          options.exchange = e;
          HaloPlan<D> plan(domain, shape, depth, options);
          const test::TestField<float, D> field(domain, plan, 0, static_cast<Memory>(turn++ % test::kMemories));
          plan.exchange(field.ref());
          std::int64_t wrong = 0;
          field.for_each_wrong(needed, [&](const Index<D>&, float, float) { ++wrong; });
          EXPECT_EQ(wrong, 0) << exchange_name(e) << ": " << name << " depth " << depth << " on "
                              << shape_string<D>(extents);
        }
      }
  }
}

TEST(HaloDepths, In3D) {
  check_depths<3>({5, 4, 7}, 0, 5);
}
TEST(HaloDepths, In4D) {
  check_depths<4>({2, 3, 2, 3}, 0, 5);
}

}  // namespace
}  // namespace isohalo
