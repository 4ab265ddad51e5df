/// Small grids that lie many times over in the ghosts: right by every way, and bounded in memory and time.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "framework/halo/ghost_fill.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::Memory;

std::int64_t peak_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
  return 0;
}

/// `count` offsets that go round each dimension almost once.
StencilShape<4> far_offsets(const Index<4>& extents, int count) {
  test::Random random(7);
  Offsets<4> list;
  for (int k = 0; k < count; ++k) {
    Index<4> o;
    for (int j = 0; j < 4; ++j) o[j] = random.in(1 - extents[j], extents[j] - 1);
    list.push_back(o);
  }
  return StencilShape<4>::of(list);
}

/// 912 cells; the array of a rank has some 5 million.
TEST(WrappedGhosts, CostLittleAndAreRight) {
  const Index<4> extents{3, 4, 4, 19};
  const auto shape = far_offsets(extents, 20);
  DomainOptions<4> periodic;
  periodic.periodic.fill(true);
  const CartesianDomain<4> domain(MPI_COMM_WORLD, extents, periodic);
  const detail::NeededCells<4> needed(domain, shape, 5);
  const HaloPlan<4> any(domain, shape, 5);
  detail::ProbeField<double, 4> field(domain, any, 0, Memory::plain);
  const BoundaryTopology<4> around{domain.global(), domain.periodic(), {}, {}};
  for (const HaloPattern pattern : {HaloPattern::direct, HaloPattern::coalesced}) {
    const auto schedule =
        halo_schedule(pattern, HaloGeometry<4>{domain.decomposition(), shape, 5, around}, domain.coordinates());
    EXPECT_LE(test::cells_received(schedule), 912);
    EXPECT_LE(halo_cost(schedule).cells_sent, 912 * test::ranks());
  }
  int number = 0;
  for (const Exchange e : {Exchange::shared, Exchange::automatic, Exchange::direct, Exchange::coalesced_packed}) {
    field.refill(++number);
    const std::int64_t before = peak_kib();
    const auto start = std::chrono::steady_clock::now();
    HaloPlan<4> plan(domain, shape, 5, HaloOptions<4>{{}, {}, e, {}});
    plan.exchange(field.ref());
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // On a quiet machine 0.1 s; 7 s and hundreds of MB when every ghost came by itself.
    EXPECT_LT(s, 20) << exchange_name(e);
    EXPECT_LT(peak_kib() - before, 64 << 10) << exchange_name(e);
    RecordProperty("seconds_" + exchange_name(e), std::to_string(s));
    if (test::rank() == 0)
      std::printf("%s: %.3f s, %ld KiB\n", exchange_name(e).c_str(), s, static_cast<long>(peak_kib() - before));
    std::int64_t wrong = 0;
    field.for_each_wrong(needed, [&](const Index<4>&, double, double) { ++wrong; });
    EXPECT_EQ(wrong, 0) << exchange_name(e);
  }
}

/// Needs that one step after the other finds, with mirrors, on the grid and in the frame; and by layers. Beside an
/// array that repeats nothing.
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
    ASSERT_TRUE((HaloGeometry<2>{domain.decomposition(), far.shape, far.depth, around}.repeats_grid()));
    ASSERT_FALSE((HaloGeometry<2>{domain.decomposition(), near.shape, near.depth, around}.repeats_grid()));
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
