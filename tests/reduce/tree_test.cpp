/// The tree and its allreduce in process: many virtual ranks, real values, an order-sensitive operation.

#include "framework/reduce/tree.hpp"

#include <gtest/gtest.h>

#include <map>

#include "datatypes/error.hpp"
#include "framework/io/digest.hpp"
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

/// Neither associative nor commutative: any other order or pairing shows.
struct Hash {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return mix64(a * 3 + mix64(b + 17)); }
};

/// One virtual rank's share of the whole computation.
template <int D>
std::vector<std::uint64_t> simulate(const Decomposition<D>& d, const Index<D>& tile,
                                    const std::vector<std::uint64_t>& values) {
  const Tiling<D> tiling(d, tile);
  const FrontierTree<D> tree(tiling);
  const Hash op;
  const int p = d.ranks();
  std::vector<std::map<std::int32_t, std::uint64_t>> known(static_cast<std::size_t>(p));
  for (int r = 0; r < p; ++r) {
    const Box<D> held = tiling.owned_by(d.coordinates(r));
    std::vector<std::uint64_t> tiles;
    for_each_cell(held, [&](const Index<D>& t) {
      tiles.push_back(test::tile_by_definition<std::uint64_t, D>(d.global(), tile, t, values, op));
    });
    std::vector<Combine> combines;
    for (auto leaf : tree.leaves_of(r)) append_combines(tiling, held, tree.tiles(leaf), combines);
    for (const auto& c : combines)
      tiles[static_cast<std::size_t>(c.into)] =
          op(tiles[static_cast<std::size_t>(c.into)], tiles[static_cast<std::size_t>(c.from)]);
    for (auto leaf : tree.leaves_of(r))
      known[static_cast<std::size_t>(r)][leaf] =
          tiles[static_cast<std::size_t>(linear_index(held, tree.tiles(leaf).low))];
  }
  std::vector<std::vector<ReduceStage>> stages;
  for (int r = 0; r < p; ++r) stages.push_back(dissemination_stages(tree.nodes(), r, p));
  for (std::size_t s = 0; s < stages[0].size(); ++s) {
    auto next = known;
    for (int r = 0; r < p; ++r) {
      const ReduceStage& stage = stages[static_cast<std::size_t>(r)][s];
      auto& mine = next[static_cast<std::size_t>(r)];
      EXPECT_EQ(stages[static_cast<std::size_t>(stage.from)][s].send, stage.receive);
      EXPECT_EQ(stages[static_cast<std::size_t>(stage.from)][s].to, r);
      for (auto n : stage.receive) mine[n] = known[static_cast<std::size_t>(stage.from)].at(n);
      for (auto n : stage.combine) {
        const FrontierNode& node = tree.nodes()[static_cast<std::size_t>(n)];
        mine[n] = op(mine.at(node.left), mine.at(node.right));
      }
    }
    known = next;
  }
  std::vector<std::uint64_t> roots;
  for (const auto& k : known) roots.push_back(k.at(0));
  return roots;
}

template <int D>
void check(const Index<D>& shape, const Index<D>& tile, int most_ranks) {
  std::vector<std::uint64_t> values;
  for (std::int64_t l = 0; l < box_of_shape<D>(shape).cells(); ++l)
    values.push_back(mix64(static_cast<std::uint64_t>(l)));
  const std::uint64_t expected = test::reduce_by_definition<std::uint64_t, D>(shape, tile, values, Hash());
  for (int p = 1; p <= most_ranks; ++p)
    for (const auto& grid : all_process_grids<D>(shape, p))
      for (double tolerance : {0.0, 0.02, 0.3}) {
        const auto roots = simulate<D>(Decomposition<D>(shape, grid, tolerance), tile, values);
        for (int r = 0; r < p; ++r)
          ASSERT_EQ(roots[static_cast<std::size_t>(r)], expected) << "p=" << p << " rank " << r;
      }
}

TEST(Tree, SameBitsForEveryRankCountIn1D) {
  check<1>({300}, {8}, 64);
}
TEST(Tree, SameBitsForEveryRankCountIn2D) {
  check<2>({61, 35}, {4, 8}, 48);
}
TEST(Tree, SameBitsForEveryRankCountIn3D) {
  check<3>({9, 11, 17}, {2, 2, 4}, 30);
}
TEST(Tree, SameBitsForEveryRankCountIn4D) {
  check<4>({5, 4, 6, 7}, {2, 1, 2, 4}, 12);
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
    EXPECT_EQ(gathered[t], tiling.is_cut(t) ? tiling.cells_of_tile(t).cells() : 0);
  });
}

}  // namespace
}  // namespace isohalo
