/// Pure geometry: boxes, process grids, cuts, the mesh of ranks.

#include <gtest/gtest.h>

#include <cmath>

#include "datatypes/error.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/domain/decomposition.hpp"
#include "framework/domain/mesh.hpp"
#include "framework/mpi/agreement.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

TEST(Box, VisitsCellsInIndexOrder) {
  const Box<3> b{{1, 2, 3}, {3, 5, 7}};
  std::int64_t l = 0;
  for_each_cell(b, [&](const Index<3>& i) {
    EXPECT_EQ(linear_index(b, i), l);
    EXPECT_EQ(index_of_linear(b, l), i);
    ++l;
  });
  EXPECT_EQ(l, b.cells());
  EXPECT_EQ(b.cells(), 24);
  int rows = 0;
  for_each_row(Box<3>{{0, 0, 0}, {2, 0, 3}}, [&](const Index<3>&) { ++rows; });
  EXPECT_EQ(rows, 0);
}

template <int D>
void check_covers(const Decomposition<D>& d) {
  std::int64_t cells = 0;
  for (int r = 0; r < d.ranks(); ++r) {
    const Box<D> b = d.box(r);
    ASSERT_FALSE(b.empty());
    cells += b.cells();
    ASSERT_EQ(d.rank_at(d.coordinates(r)), r);
    Index<D> last;
    for (int j = 0; j < D; ++j) {
      last[j] = b.high[j] - 1;
      ASSERT_EQ(d.owner(j, b.low[j]), d.coordinates(r)[j]);
      ASSERT_EQ(d.owner(j, last[j]), d.coordinates(r)[j]);
    }
  }
  ASSERT_EQ(cells, d.global().cells());  // tensor product of disjoint intervals
}

TEST(Decomposition, EveryGridAndToleranceCoversTheDomain) {
  for (double tolerance : {0.0, 0.02, 0.1, 0.5})
    for (const Index<3>& shape : {Index<3>{17, 20, 21}, Index<3>{1, 1, 64}, Index<3>{6, 2, 3}, Index<3>{100, 7, 1}})
      for (int p = 1; p <= 12; ++p)
        for (const auto& grid : all_process_grids<3>(shape, p))
          check_covers(Decomposition<3>(shape, grid, tolerance));
}

TEST(Decomposition, CutsSnapWithinTheTolerance) {
  const Decomposition<1> even({1000}, {3}, 0.0);
  EXPECT_EQ(even.cut(0, 1), 333);
  const Decomposition<1> snapped({1000}, {3}, 0.05);  // 333.3 +- 16.7: 320 = 5 * 64 is the multiple of most twos
  EXPECT_EQ(snapped.cut(0, 1), 320);
  EXPECT_EQ(snapped.cut(0, 2), 672);
  for (int blocks : {2, 3, 7, 61})
    for (double tolerance : {0.01, 0.1, 0.3, 0.5}) {
      const Decomposition<1> d({1009}, {blocks}, tolerance);
      for (int c = 1; c < blocks; ++c)
        EXPECT_LE(std::abs(static_cast<double>(d.cut(0, c)) - 1009.0 * c / blocks),
                  std::max(1.0, tolerance * 1009 / blocks + 1e-9));
    }
}

TEST(Decomposition, UserCuts) {
  const Decomposition<2> d({10, 8}, {std::vector<std::int64_t>{0, 1, 10}, std::vector<std::int64_t>{0, 3, 4, 8}});
  check_covers(d);
  EXPECT_EQ(d.smallest_extent(0), 1);
  EXPECT_EQ(d.largest_extent(1), 4);
  EXPECT_THROW((Decomposition<2>({10, 8}, {std::vector<std::int64_t>{0, 0, 10}, std::vector<std::int64_t>{0, 8}})),
               UsageError);
  EXPECT_THROW((Decomposition<2>({10, 8}, {std::vector<std::int64_t>{0, 9}, std::vector<std::int64_t>{0, 8}})),
               UsageError);
}

TEST(ProcessGrid, LeavesTheFastestDimensionUncutAndFits) {
  EXPECT_EQ((choose_process_grid<2>({1000, 1000}, 4)), (PerDim<int, 2>{4, 1}));
  EXPECT_EQ((choose_process_grid<3>({256, 256, 256}, 2)), (PerDim<int, 3>{2, 1, 1}));
  EXPECT_EQ((choose_process_grid<3>({256, 256, 256}, 64))[2], 1);
  EXPECT_EQ((choose_process_grid<2>({1, 1000}, 6)), (PerDim<int, 2>{1, 6}));
  for (int p = 1; p <= 64; ++p) {
    const auto g = choose_process_grid<3>({64, 64, 64}, p);
    EXPECT_EQ(g[0] * g[1] * g[2], p);
  }
  try {
    choose_process_grid<2>({3, 3}, 7);
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("run on 6 ranks"), std::string::npos) << e.what();
  }
}

TEST(ProcessGrid, RefusesAbsurdShapes) {
  EXPECT_THROW((checked_cells<3>({1 << 20, 1 << 20, 1 << 20})), UsageError);
  EXPECT_THROW((checked_cells<2>({0, 5})), UsageError);
  EXPECT_EQ((checked_cells<2>({std::int64_t{1} << 26, std::int64_t{1} << 26})), std::int64_t{1} << 52);
}

TEST(Mesh, RelativeRanksAndCoordinatesByBruteForce) {
  for (int periodic = 0; periodic < 8; ++periodic) {
    const Mesh m({3, 1, 4}, {(periodic & 1) != 0, (periodic & 2) != 0, (periodic & 4) != 0});
    for (int from = 0; from < m.size(); ++from) {
      int c[3];
      m.coordinates(from, c);
      ASSERT_EQ(m.rank_at(c), from);
      for (int a = -7; a <= 7; ++a)
        for (int b = -2; b <= 2; ++b)
          for (int e = -9; e <= 9; ++e) {
            const int relative[3] = {a, b, e};
            int expected = 0;
            for (int j = 0; j < 3 && expected != Mesh::no_rank; ++j) {
              int x = c[j] + relative[j];
              if (m.periodic(j)) x = ((x % m.extent(j)) + m.extent(j)) % m.extent(j);
              expected = x < 0 || x >= m.extent(j) ? Mesh::no_rank : expected * m.extent(j) + x;
            }
            ASSERT_EQ(m.relative_rank(from, relative), expected);
          }
      for (int to = 0; to < m.size(); ++to) {
        int relative[3];
        m.relative_coordinates(from, to, relative);
        ASSERT_EQ(m.relative_rank(from, relative), to);
        for (int j = 0; j < 3; ++j)
          if (m.periodic(j)) {
            ASSERT_LE(2 * relative[j], m.extent(j));   // shortest ..
            ASSERT_GT(2 * relative[j], -m.extent(j));  // .. and positive on a tie
          }
      }
    }
  }
}

TEST(CartesianDomain, NamesWhatIsWrongWithAProcessGrid) {
  DomainOptions<2> o;
  o.process_grid = {{test::ranks() + 1, 1}};
  EXPECT_THROW((CartesianDomain<2>(MPI_COMM_WORLD, {64, 64}, o)), UsageError);
  o.process_grid.reset();
  o.cuts = {{std::vector<std::int64_t>(1, 0), std::vector<std::int64_t>{0, 64}}};
  EXPECT_THROW((CartesianDomain<2>(MPI_COMM_WORLD, {64, 64}, o)), UsageError);
  EXPECT_THROW((CartesianDomain<1>(MPI_COMM_NULL, {64})), UsageError);
}

TEST(CartesianDomain, OverAnotherGridHasAsManyBlocks) {
  const int ranks = test::ranks();
  DomainOptions<2> options;
  options.process_grid = {{ranks, 1}};
  const CartesianDomain<2> fine(MPI_COMM_WORLD, {64, 48}, options);
  const CartesianDomain<2> coarse(fine, Decomposition<2>({32, 24}, {ranks, 1}, 0));
  EXPECT_EQ(coarse.coordinates(), fine.coordinates());
  EXPECT_EQ(coarse.owned(), coarse.decomposition().box(test::rank()));
  test::expect_refusal(
      std::to_string(ranks) + " x 2 blocks for ranks of the process grid " + std::to_string(ranks) + " x 1", [&] {
        CartesianDomain<2>(fine, Decomposition<2>({32, 24}, {ranks, 2}, 0));
      });
}

TEST(CartesianDomain, ArgumentsThatDifferBetweenRanksAreNamedOnAllOfThem) {
  if (test::ranks() == 1) return;
  const int ranks = test::ranks(), last = ranks - 1;
  const std::int64_t n = 64;
  for (const int who : {0, last}) {
    const bool odd = test::rank() == who;
    const auto refused = [&](const std::string& part, const Index<2>& shape, const DomainOptions<2>& options) {
      test::expect_refusal(part, [&] { CartesianDomain<2>(MPI_COMM_WORLD, shape, options); });
      const CartesianDomain<2> good(MPI_COMM_WORLD, {n, n});  // as if nothing had been
      EXPECT_EQ(good.comm().sum(static_cast<std::uint64_t>(good.owned().cells())), 64u * 64u);
    };
    // Rank 0 is what others are compared with: when it is the odd one, rank 1 is the first that differs.
    const std::string first = "rank " + std::to_string(who == 0 ? 1 : last);
    refused(
        "\"shape\" differs between ranks: rank 0 has \"64 " + std::string(who == 0 ? "65" : "64") + "\", " + first,
        {n, odd ? n + 1 : n}, {});
    DomainOptions<2> o;
    o.periodic = {true, odd};
    refused("\"periodic\" differs between ranks", {n, n}, o);
    o = {};
    o.alignment_tolerance = odd ? 0.02 : 0.020000000001;
    refused("\"alignment_tolerance\" differs", {n, n}, o);
    o = {};
    o.process_grid = odd ? PerDim<int, 2>{ranks, 1} : PerDim<int, 2>{1, ranks};
    refused("\"process_grid\" differs between ranks: rank 0 has \"", {n, n}, o);
    o = {};
    std::vector<std::int64_t> cuts(1, 0);
    for (int c = 1; c < ranks; ++c) cuts.push_back(c + odd);
    cuts.push_back(n);
    o.cuts = {{cuts, std::vector<std::int64_t>{0, n}}};
    refused("\"cuts\" differs between ranks: rank 0 has \"0 ", {n, n}, o);
    if (!odd) o.cuts.reset();
    refused("\"cuts\" differs between ranks: rank 0 has \"", {n, n}, o);
    o = {};
    if (odd) o.process_grid = {{ranks, 2}};  // wrong in itself: the others must not wait
    refused((who > 0 ? "rank " + std::to_string(who) + ": " : "") + "process grid", {n, n}, o);
    refused("the grid has extent 0", {n, odd ? 0 : n}, {});
    o = {};
    o.alignment_tolerance = odd ? 7 : 0.02;
    refused("alignment tolerance 7", {n, n}, o);
  }
}

TEST(CartesianDomain, OfOtherDimensionsOnOneRankIsRefusedOnAll) {
  if (test::ranks() == 1) return;
  test::expect_refusal("\"shape\" differs between ranks: rank 0 has \"64 64\", rank 1 has \"64\"", [] {
    if (test::rank() == 1)
      CartesianDomain<1>(MPI_COMM_WORLD, {64});
    else
      CartesianDomain<2>(MPI_COMM_WORLD, {64, 64});
  });
}

TEST(Agreement, LongValuesAreShortenedToWhereTheyDiffer) {
  if (test::ranks() == 1) return;
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  std::string value(1000, 'a');
  if (test::rank() == 1) value[700] = 'b';
  const std::vector<Argument> list{{"first", "1"}, {"text", value}};
  test::expect_refusal("call: argument \"text\" differs between ranks: rank 0 has \".." + std::string(60, 'a') +
                           "..\", rank 1 has \".." + std::string(20, 'a') + "b" + std::string(39, 'a') + "..\"",
                       [&] { agree_same(comm, "call", list); });
  std::vector<Argument> more = list;  // another number of them, on all but rank 0
  more[1].value = "same";
  more.resize(test::rank() == 0 ? 2 : 1);
  test::expect_refusal("argument \"text\" differs between ranks: rank 0 has \"same\", rank 1 has \"no more\"",
                       [&] { agree_same(comm, "call", more); });
  more.resize(1);
  agree_same(comm, "call", more);
}

TEST(Communicator, IsDuplicatedOnceAndAgreesOnErrors) {
  MPI_Comm user = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &user);
  const Communicator a = Communicator::of(user), b = Communicator::of(user);
  EXPECT_EQ(a.get(), b.get());
  EXPECT_NE(a.get(), user);
  EXPECT_EQ(Communicator::of(a.get()).get(), a.get());  // no duplicate of a duplicate
  MPI_Comm_free(&user);
  a.barrier();  // the duplicate lives as long as its owners
  EXPECT_EQ(a.sum(1), static_cast<std::uint64_t>(test::ranks()));
}

}  // namespace
}  // namespace isohalo
