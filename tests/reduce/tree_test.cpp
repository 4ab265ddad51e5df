/// The tree and its tiles.

#include "framework/reduce/tree.hpp"

#include <gtest/gtest.h>

#include <map>

#include "datatypes/error.hpp"
#include "datatypes/mix.hpp"
#include "framework/reduce/tile_exchange.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/tree_by_definition.hpp"

namespace isohalo {
namespace {

std::vector<double> random_field(std::int64_t cells, std::uint64_t seed) {
  std::vector<double> v;
  for (std::int64_t l = 0; l < cells; ++l)
    v.push_back(
        -1 + 2 * (static_cast<double>(mix64(seed + static_cast<std::uint64_t>(l + 1) * kGolden) >> 11) * 0x1p-53));
  return v;
}

template <int D>
double tree_sum(const Index<D>& shape) {
  return test::reduce_by_definition<double, D>(shape, default_tile<D>(),
                                               random_field(box_of_shape<D>(shape).cells(), 42), std::plus<>());
}

TEST(Tree, CheckValuesOfTheDesign) {
  EXPECT_EQ(tree_sum<2>({61, 35}), 0x1.db4e67b8c54d4p+2);
  EXPECT_EQ(tree_sum<3>({9, 11, 37}), -0x1.2055605dbaee0p-2);
  EXPECT_EQ(tree_sum<1>({1000}), -0x1.4735cd7eec28ep+4);
}

TEST(Tree, SplitsTheLongestDimensionAtAPowerOfTwo) {
  const Tiling<2> t(Decomposition<2>({61, 35}, {1, 1}, 0), {16, 16});
  const auto s = split_of(t, t.all());  // 4 x 3 tiles, 61 x 35 cells
  EXPECT_EQ(s.dimension, 0);
  EXPECT_EQ(s.at, 2);
  const Tiling<2> square(Decomposition<2>({48, 48}, {1, 1}, 0), {16, 16});
  EXPECT_EQ(split_of(square, square.all()).dimension, 0);  // a tie: the slowest
  EXPECT_EQ(split_of(square, square.all()).at, 2);
}

TEST(Tiling, RefusesTilesThatAreNoPowersOfTwo) {
  const Decomposition<1> d({10}, {1}, 0);
  EXPECT_THROW(Tiling<1>(d, {3}), UsageError);
  EXPECT_THROW(Tiling<1>(d, {0}), UsageError);
}

TEST(TileExchange, EveryCutTileArrivesWholeAtItsOwner) {
  const Decomposition<2> d({13, 22}, {5, 3}, 0);
  const Tiling<2> tiling(d, {4, 8});
  std::map<Index<2>, std::int64_t> gathered;
  for (int r = 0; r < d.ranks(); ++r) {
    const TileExchange<2> e(tiling, d.coordinates(r));
    for (const auto& t : e.owned_cut) gathered[t] += 0;
    for (const auto& part : e.arriving) gathered[part.tile] += part.cells.cells();
    for (const auto& part : e.local)
      if (tiling.owner(part.tile) == d.coordinates(r)) gathered[part.tile] += part.cells.cells();
    for (const auto& m : e.send) {  // both sides agree on lengths
      const TileExchange<2> other(tiling, d.coordinates(m.peer));
      const auto match =
          std::find_if(other.receive.begin(), other.receive.end(), [&](const auto& x) { return x.peer == r; });
      ASSERT_NE(match, other.receive.end());
      EXPECT_EQ(match->cells, m.cells);
    }
  }
  for_each_cell(tiling.all(), [&](const Index<2>& t) {
    EXPECT_EQ(gathered.contains(t), tiling.is_cut(t));
    EXPECT_EQ(gathered[t], tiling.is_cut(t) ? tiling.cells_of(Box<2>::of_cell(t)).cells() : 0);
  });
}

}  // namespace
}  // namespace isohalo
