/// Which ghost cells, who owns them: every plan against brute force, in process, for many virtual ranks.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

template <int D>
void check_pieces(const Decomposition<D>& d, const StencilShape<D>& shape, int depth,
                  const BoundaryTopology<D>& around, const std::string& what) {
  std::map<int, std::set<int>> readers, receivers;
  for (int r = 0; r < d.ranks(); ++r) {
    const auto coords = d.coordinates(r);
    auto missing = test::needed_by_definition(d.box(r), shape.offsets(), depth, around);
    for (const auto& piece : HaloGeometry<D>{d, shape, depth, around}.regions(coords)) {
      const Box<D> source = d.box(piece.owner);
      ASSERT_FALSE(piece.region.empty()) << what;
      readers[d.rank_at(piece.owner)].insert(r);
      piece.region.for_each_box([&](const Box<D>& box) {
        for_each_cell(box, [&](const Index<D>& i) {
          Index<D> owned = i;
          for (int j = 0; j < D; ++j) {
            owned[j] -= piece.shift[j];
            ASSERT_EQ(((i[j] - owned[j]) % d.global().extent(j)), 0) << what;
          }
          ASSERT_TRUE(source.contains(owned)) << what << ": cell " << to_string<D>(i);
          ASSERT_EQ(missing.erase(i), 1u)
              << what << ": cell " << to_string<D>(i) << " twice or not needed, rank " << r;
        });
      });
    }
    ASSERT_TRUE(missing.empty()) << what << ": " << missing.size() << " cells missing, first "
                                 << to_string<D>(*missing.begin()) << ", rank " << r;
    for (const auto& c : HaloGeometry<D>{d, shape, depth, around}.possible_receivers(coords))
      receivers[r].insert(d.rank_at(c));
  }
  for (const auto& [owner, list] : readers)
    for (int reader : list)
      ASSERT_TRUE(receivers[owner].contains(reader)) << what << ": " << owner << " -> " << reader;
}

/// Plays an exchange by slabs for all blocks at once, cell by cell: each needed ghost must come once, nothing else,
/// and what is read must be there, owned or brought by an earlier stage.
template <int D>
void check_slabs(const Decomposition<D>& d, const StencilShape<D>& shape, int depth,
                 const BoundaryTopology<D>& around, const std::string& what) {
  std::vector<std::set<Index<D>>> held, missing;  // by rank: in place after the stages so far; still to come
  for (int r = 0; r < d.ranks(); ++r) {
    auto& cells = held.emplace_back();
    for_each_cell(d.box(r), [&](const Index<D>& i) { cells.insert(i); });
    missing.push_back(test::needed_by_definition(d.box(r), shape.offsets(), depth, around));
  }
  for (int stage = 0; stage < D; ++stage) {
    const auto before = held;
    for (int r = 0; r < d.ranks(); ++r)
      for (const auto& piece :
           HaloGeometry<D>{d, shape, depth, around}.regions(d.coordinates(r), HaloPattern::slabs)) {
        if (piece.stage != stage) continue;
        const int owner = d.rank_at(piece.owner);
        for (int j = 0; j < D; ++j)
          ASSERT_TRUE(j == stage || (piece.owner[j] == d.coordinates(r)[j] && piece.shift[j] == 0)) << what;
        ASSERT_EQ(piece.shift[stage] % d.global().extent(stage), 0) << what;
        piece.region.for_each_box([&](const Box<D>& box) {
          for_each_cell(box, [&](const Index<D>& i) {
            Index<D> source = i;
            source[stage] -= piece.shift[stage];
            const auto at = static_cast<std::size_t>(r);
            ASSERT_TRUE(before[static_cast<std::size_t>(owner)].contains(source))
                << what << ": " << to_string<D>(i);
            ASSERT_EQ(missing[at].erase(i), 1u) << what << ": " << to_string<D>(i) << " twice or not needed";
            held[at].insert(i);
          });
        });
        if (testing::Test::HasFatalFailure()) return;
      }
  }
  for (const auto& cells : missing) ASSERT_TRUE(cells.empty()) << what << ": " << cells.size() << " cells missing";
}

template <int D>
Decomposition<D> random_decomposition(const Index<D>& shape, test::Random& random) {
  PerDim<std::vector<std::int64_t>, D> cuts;
  for (int j = 0; j < D; ++j) {
    cuts[j] = {0};
    for (std::int64_t x = 1; x < shape[j]; ++x)
      if (random.in(0, 3) == 0 && cuts[j].size() < 4) cuts[j].push_back(x);
    cuts[j].push_back(shape[j]);
  }
  return {shape, cuts};
}

template <int D>
void check_all(const std::vector<Index<D>>& grids, int deepest) {
  test::Random random(7 * D);
  for (const auto& extents : grids)
    for (const auto& [name, shape] : test::shapes<D>())
      for (int sides = 0; sides < (1 << D); ++sides)
        for (int depth = 0; depth <= deepest; ++depth) {
          BoundaryTopology<D> around{box_of_shape<D>(extents), {}, {}, {}};
          for (int j = 0; j < D; ++j) {
            around.periodic[j] = sides >> j & 1;
            around.mirror_low[j] = !around.periodic[j] && random.in(0, 1);
            around.mirror_high[j] = !around.periodic[j] && random.in(0, 1);
          }
          const auto d = random_decomposition<D>(extents, random);
          check_pieces(d, shape, depth, around,
                       name + " depth " + std::to_string(depth) + " sides " + std::to_string(sides));
          if (slabs_possible(shape))
            check_slabs(d, shape, depth, around,
                        "slabs: " + name + " depth " + std::to_string(depth) + " sides " + std::to_string(sides));
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(HaloGeometry, ExactIn1D) {
  check_all<1>({{13}, {2}, {1}, {5}}, 5);
}
TEST(HaloGeometry, ExactIn2D) {
  check_all<2>({{7, 9}, {1, 6}, {3, 2}}, 5);
}
TEST(HaloGeometry, ExactIn3D) {
  check_all<3>({{5, 4, 6}, {3, 1, 2}}, 3);
}
TEST(HaloGeometry, ExactIn4D) {
  check_all<4>({{3, 2, 4, 3}}, 2);
}

std::int64_t binomial(std::int64_t a, std::int64_t b) {
  std::int64_t r = 1;
  for (std::int64_t i = 0; i < b; ++i) r = r * (a - i) / (i + 1);
  return r;
}

/// The ghost volume of a block n^d (docs/exchange.md).
template <int D>
void check_volume(std::int64_t n, int k) {
  Index<D> shape, wide;
  shape.fill(3 * n);
  wide.fill(3);
  PerDim<int, D> grid, middle;
  grid.fill(3);
  middle.fill(1);
  const Decomposition<D> d(shape, grid, 0);
  const BoundaryTopology<D> around{d.global(), {}, {}, {}};
  for (const auto& [name, s] : test::shapes<D>()) {
    if (s.kind() == StencilShape<D>::Kind::custom) continue;
    const int r = s.radius();
    if (k * r > n) continue;
    std::int64_t expected = 0, found = 0;
    for (int j = 1; j <= D; ++j) {
      std::int64_t block = 1, c = 1;
      for (int i = 0; i < D - j; ++i) block *= n;
      for (int i = 0; i < j; ++i)
        c *= s.kind() == StencilShape<D>::Kind::moore ? k * r : s.kind() == StencilShape<D>::Kind::star ? r : 1;
      if (s.kind() == StencilShape<D>::Kind::star) c *= binomial(k, j);
      if (s.kind() == StencilShape<D>::Kind::von_neumann) c = binomial(k * r, j);
      expected += binomial(D, j) * (1 << j) * block * c;
    }
    for (const auto& p : HaloGeometry<D>{d, s, k, around}.regions(middle)) found += p.region.cells();
    EXPECT_EQ(found, expected) << name << " D=" << D << " k=" << k;
  }
}

TEST(HaloGeometry, VolumesFollowTheFormula) {
  for (int k = 0; k <= 4; ++k)
    check_volume<1>(8, k), check_volume<2>(8, k), check_volume<3>(8, k), check_volume<4>(4, k);
}

TEST(HaloGeometry, EmptyCornersSendNoMessage) {
  const Decomposition<3> d({12, 12, 12}, {3, 3, 3}, 0);
  const BoundaryTopology<3> around{d.global(), {true, true, true}, {}, {}};
  const auto star = StencilShape<3>::star(1);
  EXPECT_EQ((HaloGeometry<3>{d, star, 1, around}.regions({1, 1, 1}).size()), 6u);
  EXPECT_EQ((HaloGeometry<3>{d, star, 2, around}.regions({1, 1, 1}).size()), 18u);
  EXPECT_EQ((HaloGeometry<3>{d, star, 3, around}.regions({1, 1, 1}).size()), 26u);
}

TEST(HaloGeometry, LevelsOfNeededBoxesNest) {
  // needed_boxes is what deep stepping sweeps: disjoint, and equal to block + k S.
  for (const auto& [name, s] : test::shapes<3>())
    for (int k = 0; k <= 3; ++k) {
      const BoundaryTopology<3> around{
          Box<3>{{0, 0, 0}, {9, 8, 7}}, {true, false, false}, {false, true, false}, {false, true, true}};
      const Box<3> block{{0, 2, 3}, {4, 6, 7}};
      auto expected = test::needed_by_definition(block, s.offsets(), k, around);
      for_each_cell(block, [&](const Index<3>& i) { expected.insert(i); });
      for (const auto& b : s.needed_boxes(block, k, around))
        for_each_cell(b, [&, &name = name](const Index<3>& i) {
          ASSERT_EQ(expected.erase(i), 1u) << name << to_string<3>(i);
        });
      EXPECT_TRUE(expected.empty()) << name << " k=" << k;
    }
}

TEST(StencilShape, RecognisesListsInAnyOrderWithOrWithoutSelf) {
  using Kind = StencilShape<2>::Kind;
  auto moore2 = moore<2>(2, Self::leave_out);
  std::shuffle(moore2.begin(), moore2.end(), std::mt19937(3));
  EXPECT_EQ(StencilShape<2>::of(moore2).kind(), Kind::moore);
  EXPECT_EQ(StencilShape<2>::of(von_neumann<2>(3, Self::include)).kind(), Kind::von_neumann);
  EXPECT_EQ(StencilShape<2>::of(star<2>(3, Self::leave_out)).kind(), Kind::star);
  EXPECT_EQ(StencilShape<2>::of({{0, 1}, {0, -1}, {1, 0}}).kind(), Kind::custom);
  EXPECT_EQ(StencilShape<2>::of({{0, 0}}).radius(), 0);
}

}  // namespace
}  // namespace isohalo
