/// MPI types of regions against brute force, over padded, permuted and reversed layouts.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "datatypes/datatype.hpp"
#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::Random;

/// An array layout around an allocated box: stride per dimension, perhaps padded, permuted or reversed.
template <int D>
struct Layout {
  Box<D> box;
  Index<D> stride;
  std::int64_t offset = 0, size = 0;  // of the element of box.low, and of the whole memory

  Layout(const Box<D>& b, Random& random) : box(b) {
    std::vector<int> order(D);
    std::iota(order.begin(), order.end(), 0);
    const bool plain = random.in(0, 1) == 0;
    if (!plain)
      for (int j = D - 1; j > 0; --j)
        std::swap(order[static_cast<std::size_t>(j)], order[static_cast<std::size_t>(random.in(0, j))]);
    std::int64_t step = 1;
    for (int k = D - 1; k >= 0; --k) {
      const int j = order[static_cast<std::size_t>(k)];
      const bool reversed = !plain && random.in(0, 2) == 0;
      stride[j] = reversed ? -step : step;
      if (reversed) offset += step * (b.extent(j) - 1);
      step *= b.extent(j) + random.in(0, 3);
    }
    size = step;
  }
  std::int64_t at(const Index<D>& i) const {
    std::int64_t k = offset;
    for (int j = 0; j < D; ++j) k += (i[j] - box.low[j]) * stride[j];
    return k;
  }
};

template <int D>
Region<D> random_region(Random& random) {
  Region<D> r;
  r.granule = random.in(1, 3);
  r.budget = random.in(0, 3) == 0 ? Region<D>::no_limit : random.in(1, 4);
  for (int j = 0; j < D; ++j) {
    r.box.low[j] = random.in(-3, 3);
    r.box.high[j] = r.box.low[j] + random.in(1, 5);
    r.side[j] = static_cast<std::int8_t>(random.in(-1, 1));
    r.edge[j] = r.side[j] > 0 ? r.box.low[j] - random.in(0, 1) : r.box.high[j] + random.in(0, 1);
  }
  return r;
}

/// What the region means, cell by cell.
template <int D>
std::vector<Index<D>> cells_by_definition(const Region<D>& r) {
  std::vector<Index<D>> cells;
  for_each_cell(r.box, [&](const Index<D>& i) {
    std::int64_t used = 0;
    for (int j = 0; j < D; ++j) {
      if (r.side[j] == 0) continue;
      const std::int64_t depth = r.side[j] > 0 ? i[j] - r.edge[j] + 1 : r.edge[j] - i[j];
      used += (depth + r.granule - 1) / r.granule;
    }
    if (r.budget >= Region<D>::no_limit || used <= r.budget) cells.push_back(i);
  });
  return cells;
}

template <int D>
void check_random_regions() {
  Random random(D);
  for (int trial = 0; trial < 400; ++trial) {
    const Region<D> region = random_region<D>(random);
    const auto expected = cells_by_definition(region);
    ASSERT_EQ(region.empty(), expected.empty());
    ASSERT_EQ(region.cells(), static_cast<std::int64_t>(expected.size()));
    const Index<D> margin = index_of<D>(2);
    const Box<D> frame = region.box.grown(margin, margin);
    const Layout<D> from(frame, random), to(frame, random);
    std::vector<double> a(static_cast<std::size_t>(from.size)), b(static_cast<std::size_t>(to.size), -1);
    std::iota(a.begin(), a.end(), 0);
    const Index<D> origin = region.box.low;
    const Datatype send = region_type(region, origin, from.stride, MPI_DOUBLE);
    const Datatype receive = region_type(region, origin, to.stride, MPI_DOUBLE);
    ASSERT_EQ(send.size(), static_cast<std::int64_t>(expected.size() * sizeof(double)));
    MPI_Sendrecv(a.data() + from.at(origin), 1, send.get(), 0, 0, b.data() + to.at(origin), 1, receive.get(), 0, 0,
                 MPI_COMM_SELF, MPI_STATUS_IGNORE);
    std::size_t moved = 0;
    for (const auto& cell : expected) {
      ASSERT_EQ(b[static_cast<std::size_t>(to.at(cell))], a[static_cast<std::size_t>(from.at(cell))])
          << to_string<D>(cell);
      ++moved;
    }
    ASSERT_EQ(static_cast<std::size_t>(std::count(b.begin(), b.end(), -1.0)),
              b.size() - moved);  // nothing else written
  }
}

TEST(RegionType, RandomRegions1D) {
  check_random_regions<1>();
}
TEST(RegionType, RandomRegions2D) {
  check_random_regions<2>();
}
TEST(RegionType, RandomRegions3D) {
  check_random_regions<3>();
}
TEST(RegionType, RandomRegions4D) {
  check_random_regions<4>();
}

TEST(RegionType, SpaceDoesNotGrowWithFullExtents) {
  // A prism of triangles: the description must not grow with its length.
  const auto integers_of = [](std::int64_t length) {
    Region<3> r;
    r.box = Box<3>{{0, 0, 0}, {length, 4, 4}};
    r.side = {0, 1, 1};
    r.budget = 4;
    const Datatype t = region_type(r, {0, 0, 0}, {10000, 100, 1}, MPI_DOUBLE);
    int combiner = 0;
#if MPI_VERSION >= 4
    MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
    MPI_Type_get_envelope_c(t.get(), &integers, &addresses, &large, &types, &combiner);
    return integers + addresses + large;
#else
    int integers = 0, addresses = 0, types = 0;
    MPI_Type_get_envelope(t.get(), &integers, &addresses, &types, &combiner);
    return integers + addresses;
#endif
  };
  EXPECT_EQ(integers_of(10), integers_of(1000));
}

TEST(RegionType, CountsBeyond32Bits) {
  const std::int64_t big = std::int64_t{1} << 33;
  Region<3> face = Region<3>::whole(Box<3>{{0, 0, 0}, {3, big, 2}});
  const Datatype t = region_type(face, {0, 0, 0}, {big * 8, 8, 1}, MPI_DOUBLE);
  EXPECT_EQ(t.size(), 3 * big * 2 * 8);
  MPI_Count low = 0, extent = 0;
  mpi::type_get_true_extent(t.get(), &low, &extent);
  EXPECT_EQ(low, 0);
  EXPECT_EQ(extent, (2 * big * 8 + (big - 1) * 8 + 2) * 8);
  Region<2> prism;
  prism.box = Box<2>{{0, big}, {3, big + 3}};
  prism.side = {1, 1};
  prism.edge = {0, big};
  prism.budget = 3;  // depths sum to at most 3: 1+1, 1+2, 2+1
  EXPECT_EQ(region_type(prism, {0, 0}, {big * 4, 1}, MPI_FLOAT).size(), 3 * 4);
}

std::vector<int> pack_order(MPI_Datatype type, const std::vector<int>& memory, int start) {
  int bytes = 0, at = 0;
  MPI_Type_size(type, &bytes);
  std::vector<int> out(static_cast<std::size_t>(bytes) / sizeof(int));
  MPI_Pack(memory.data() + start, 1, type, out.data(), bytes, &at, MPI_COMM_SELF);
  return out;
}

TEST(TriangularType, FollowsThePaper) {
  std::vector<int> memory(100);
  std::iota(memory.begin(), memory.end(), 0);
  const Datatype growing = triangular_type(3, 1, 1, 10, 0, MPI_INT);
  EXPECT_EQ(pack_order(growing.get(), memory, 0), (std::vector<int>{0, 10, 11, 20, 21, 22}));
  const Datatype shifted = triangular_type(3, 3, -1, 10, 1, MPI_INT);
  EXPECT_EQ(pack_order(shifted.get(), memory, 0), (std::vector<int>{0, 1, 2, 11, 12, 22}));
  const Datatype upwards = triangular_type(3, 1, 1, -10, -1, MPI_INT);
  EXPECT_EQ(pack_order(upwards.get(), memory, 50), (std::vector<int>{50, 39, 40, 28, 29, 30}));
  const Datatype with_zero = triangular_type(3, 0, 2, 10, 0, MPI_INT);
  EXPECT_EQ(pack_order(with_zero.get(), memory, 0), (std::vector<int>{10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(triangular_type(0, 5, 1, 1, 0, MPI_INT).size(), 0);
  EXPECT_THROW(triangular_type(3, 1, -1, 10, 0, MPI_INT), UsageError);
  EXPECT_THROW(triangular_type(-1, 1, 0, 10, 0, MPI_INT), UsageError);
  EXPECT_THROW(triangular_type(1, 1, 0, 10, 0, MPI_DATATYPE_NULL), UsageError);  // MPI would end the program
  EXPECT_THROW(region_type<1>(Region<1>::whole({{0}, {3}}), {0}, {1}, MPI_DATATYPE_NULL), UsageError);
}

}  // namespace
}  // namespace isohalo
