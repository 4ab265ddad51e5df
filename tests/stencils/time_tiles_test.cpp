/// Several steps in time tiles: the order by its definition, and the bits of single steps whatever the tiles.

#include "stencils/time_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "stencils/cell_solver.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/solvers/gray_scott.hpp"
#include "stencils/state_stepper.hpp"
#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// Regions that shrink or stay; every cell is updated once a step, reads the step before, and nobody needs any more
/// what it overwrites.
template <int D>
void check_order(const Box<D>& first, const PerDim<bool, D>& shrinks, const Index<D>& reach,
                 const TimeTiles<D>& tiles, int steps) {
  const auto region = [&](int q) {
    Box<D> b = first;
    for (int j = 0; j < D; ++j)
      if (shrinks[j]) b.low[j] += q * reach[j], b.high[j] -= q * reach[j];
    return b;
  };
  std::map<Index<D>, int> done;  // steps that the cell has made
  const auto made = [&](const Index<D>& i) {
    const auto at = done.find(i);
    return at == done.end() ? 0 : at->second;
  };
  std::int64_t wrong = 0;
  tiles.for_each_part(steps, region, [&](int q, const Box<D>& part) {
    wrong += !region(q).contains(part);
    for (int j = 0; q + 1 == steps && j < D; ++j) {
      const auto beside = [&](std::int64_t at, std::int64_t side) { return at != side && at % tiles.unit[j] != 0; };
      wrong += beside(part.low[j], region(q).low[j]) || beside(part.high[j], region(q).high[j]);
    }
    for_each_cell(part, [&](const Index<D>& i) {
      for_each_cell(Box<D>::of_cell(i).grown(reach, reach), [&](const Index<D>& x) {
        // The place holds the value of step q: of neighbors that no step has come to, the initial one.
        if (q > 0 && !region(q - 1).contains(x)) return;
        wrong += made(x) != q && made(x) != q + 1;
      });
      wrong += made(i) != q;
    });
    for_each_cell(part, [&](const Index<D>& i) { done[i] = q + 1; });
  });
  for (int q = 0; q < steps; ++q) for_each_cell(region(q), [&](const Index<D>& i) { wrong += made(i) < q + 1; });
  ASSERT_EQ(wrong, 0) << shape_string<D>(first.extents()) << " in tiles of " << shape_string<D>(tiles.extents);
}

TEST(TimeTiles, EveryCellReadsTheStepBefore) {
  test::Random random(11);
  for (int k = 0; k < 200; ++k) {
    const int steps = static_cast<int>(random.in(1, 5));
    const auto in = [&](std::int64_t low, std::int64_t high) {
      return Index<2>{random.in(low, high), random.in(low, high)};
    };
    const Index<2> reach = in(0, 2), more = in(0, 2);
    const Box<2> first{in(-3, 3), in(8, 20)};
    const TimeTiles<2> tiles{in(1, 9), {reach[0] + more[0], reach[1] + more[1]}};
    check_order<2>(first, {random.in(0, 1) == 1, random.in(0, 1) == 1}, reach,
                   k % 3 ? tiles : tiles.in_units(in(1, 6)), steps);
    check_order<1>({{first.low[0]}, {first.high[0]}}, {k % 2 == 1}, {reach[0]}, {{random.in(1, 9)}, {reach[0]}},
                   steps);
  }
  check_order<3>({{0, 0, 0}, {7, 9, 6}}, {false, true, false}, {1, 1, 1}, {{2, 3, 4}, {1, 1, 2}}, 3);
}

TEST(TimeTiles, FetchWhatTheNextOneBringsIn) {
  const Box<2> region{{-2, -8}, {30, 72}};
  const Index<2> stride{1000, 1};
  TimeTiles<2> tiles{{5, 16}, {2, 8}};
  const auto place = [&](const Index<2>& i) { return offset_of<2>(i, Index<2>{}, stride); };
  EXPECT_EQ(tiles.next(2, 5, region, stride), 0);
  tiles.fetched = true;
  for (const int steps : {2, 3, 4, 5, 8, 9}) {
    std::vector<std::pair<int, Box<2>>> parts;
    tiles.for_each_part(
        steps, [&](int) { return region; }, [&](int q, const Box<2>& part) { parts.emplace_back(q, part); });
    int fetched = 0;
    for (std::size_t k = 0; k + 1 < parts.size(); ++k) {
      const auto& [q, part] = parts[k];
      const std::int64_t next = tiles.next(q, steps, region, stride);
      if (next == 0) continue;
      EXPECT_EQ(q % 2, 0);
      const auto first = std::find_if(parts.begin() + static_cast<std::ptrdiff_t>(k) + 1, parts.end(),
                                      [](const auto& p) { return p.first == 0; });
      const bool whole = part.extents() == tiles.extents;  // and the next one in the same row of tiles
      if (first == parts.end() || !whole || first->second.low[1] < part.low[1]) continue;
      EXPECT_EQ(place(part.low) + next, place({first->second.low[0], first->second.low[1] + tiles.skew[1]}));
      ++fetched;
    }
    EXPECT_GT(fetched, 3) << steps << " steps";
  }
  tiles.extents = {5, 80};  // one tile after the other in dimension 0
  EXPECT_EQ(tiles.next(2, 5, region, stride), (5 + 2 * 2 + 2) * 1000 + 2 * 8);
  tiles.extents = {32, 80};
  EXPECT_EQ(tiles.next(2, 5, region, stride), 0);
}

TEST(TimeTiles, AreCutToTheCache) {
  const auto cells = [](const Index<3>& w) { return static_cast<double>(w[0] * w[1] * w[2]); };
  const auto large = TimeTiles<3>::chosen({384, 384, 384}, {1, 1, 1}, 16, 8, 8, 1 << 20, 1);
  EXPECT_LE(cells(large.extents) * 16, 1 << 20);
  EXPECT_GE(cells(large.extents) * 16, 1 << 18);
  EXPECT_EQ(large.skew, (Index<3>{1, 1, 8}));
  const auto wide = TimeTiles<2>::chosen({8192, 8192}, {1, 1}, 16, 8, 8, 1 << 20, 1);
  EXPECT_LT(wide.extents[1], 8192);
  EXPECT_EQ(wide.extents[1] % 8, 0);
  // What fits the cache is one tile, all steps of it.
  const auto small = TimeTiles<3>::chosen({16, 16, 16}, {2, 2, 2}, 16, 8, 4, 1 << 20, 1);
  for (int j = 0; j < 3; ++j) EXPECT_GE(small.extents[j], 16 + 4 * (4 + small.skew[j]));
  // Rows that are updated together.
  const auto by_rows = TimeTiles<3>::chosen({384, 384, 384}, {1, 1, 1}, 16, 8, 8, 1 << 20, 8);
  EXPECT_EQ(by_rows.extents[1] % 8, 0);
  EXPECT_NEAR(cells(by_rows.extents) / cells(large.extents), 1, 0.2);
  EXPECT_EQ((TimeTiles<2>::chosen({8192, 8192}, {1, 1}, 16, 8, 8, 1 << 17, 4).extents[0] % 4), 0);
  const Index<2> of_two = TimeTiles<2>::chosen({8192, 8192}, {1, 1}, 16, 8, 8, 1 << 16, 8).extents;
  EXPECT_LE(of_two[0] * of_two[1] * 16, 2 << 16);
  EXPECT_GE((TimeTiles<3>::chosen({384, 5, 384}, {1, 1, 1}, 16, 8, 8, 1 << 20, 8).extents[1]), 5);
  const auto least = TimeTiles<4>::chosen({50, 50, 50, 50}, {4, 4, 4, 4}, 16, 8, 4, 1000, 1);
  for (int j = 0; j < 4; ++j) EXPECT_GE(least.extents[j], 1);
}

TEST(TimeTiles, ThinOnesAreThinWhereATileFollowsTheOther) {
  EXPECT_EQ((TimeTiles<2>::thin({8192, 8192}, {1, 1}, 16, 8, 8, 1 << 17, 1, 1).extents), (Index<2>{8, 512}));
  EXPECT_EQ((TimeTiles<2>::thin({8192, 8192}, {4, 4}, 48, 8, 8, 1 << 17, 3, 1).extents), (Index<2>{48, 168}));
  const auto planes = TimeTiles<3>::thin({384, 384, 384}, {1, 1, 1}, 16, 8, 8, 1 << 17, 1, 1);
  EXPECT_EQ(planes.extents, (Index<3>{10, 2, 384 + 8 * (2 + 8)}));  // rows are whole
  EXPECT_EQ(planes.skew, (Index<3>{1, 1, 8}));
  EXPECT_EQ((TimeTiles<3>::thin({384, 384, 384}, {1, 1, 1}, 16, 8, 8, 1 << 17, 1, 8).extents[1]), 8);
  // Of four threads each gets two rows.
  EXPECT_EQ((TimeTiles<3>::thin({384, 384, 384}, {1, 1, 1}, 16, 8, 8, 1 << 17, 4, 1).extents[1]), 8);
  for (const std::int64_t extent : TimeTiles<4>::thin({50, 50, 50, 50}, {4, 4, 4, 4}, 16, 8, 4, 1000, 1, 1).extents)
    EXPECT_GE(extent, 1);
  // Nothing is read along some dimensions; rows that no cache holds.
  for (const Index<3>& reach : {Index<3>{0, 0, 1}, Index<3>{1, 0, 0}, Index<3>{0, 1, 1}, Index<3>{0, 0, 0}})
    for (const std::int64_t row : {8, 3000, 1000000})
      for (const std::int64_t extent : TimeTiles<3>::thin({8, 9, row}, reach, 16, 8, 8, 1 << 15, 1, 1).extents)
        EXPECT_GE(extent, 1);
}

template <int D>
BoundaryRules<D> random_rules(test::Random& random) {
  BoundaryRules<D> r;
  for (int j = 0; j < D; ++j) {
    const bool periodic = random.in(0, 3) == 0;
    for (auto* side : {&r.low[j], &r.high[j]}) {
      side->kind = periodic ? Boundary::periodic : static_cast<Boundary>(random.in(1, 3));
      side->value = random.real(-1, 1);
    }
  }
  return r;
}

/// 11 steps in blocks that end anywhere, in tiles of any size, against one step per exchange.
template <class T, int D, std::size_t N = 1, class MakeRow>
void equals_single_steps(const std::vector<std::string>& names, const Index<D>& shape, const PerDim<int, D>& grid,
                         const StencilShape<D>& stencil, int depth, const MakeRow& make_row, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + shape_string<D>(shape) + ", depth " + std::to_string(depth));
  test::Random random(seed);
  const auto rules = random_rules<D>(random);
  DomainOptions<D> o;
  o.periodic = rules.periodic();
  o.process_grid = grid;
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape, o);
  const auto kernels = [&](const Index<D>& stride) {
    std::vector<KernelPointer<T, D>> one;
    one.push_back(row_kernel<T, D>(make_row(stride)));
    return one;
  };
  const auto stepper = [&](int deep) {
    return StateStepper<T, D>(StateFields{names}, domain, stencil, std::vector(N, rules), deep, kernels,
                              Exchange::coalesced_packed);
  };
  StateStepper<T, D> single = stepper(1), tiled = stepper(depth);
  single.overlap_by(false);
  Index<D> tile{};
  for (int j = 0; j < D; ++j) tile[j] = random.in(0, 4) == 0 ? shape[j] : random.in(1, 7);
  tiled.sweep_by({tile, {}});
  auto a = single.fields(), b = tiled.fields();
  const auto at = [](const FieldHandle<D>& f, const Index<D>& i) -> T& {
    return std::get<ArrayRef<T, D>>(f.array).at(i);
  };
  for (std::size_t f = 0; f < N; ++f)
    for_each_cell(domain.owned(), [&](const Index<D>& i) {
      const auto l = static_cast<std::uint64_t>(linear_index(domain.global(), i));
      at(a[f], i) = at(b[f], i) = static_cast<T>(test::Random(l * N + f + seed).real(0, 1));
    });
  for (std::int64_t left = 11; left > 0;) {
    const std::int64_t steps = random.in(1, left);
    const bool change = random.in(0, 1) == 1;
    const double s = single.advance(steps, change), t = tiled.advance(steps, change);
    ASSERT_EQ(std::memcmp(&s, &t, sizeof s), 0) << "change sum: " << s << " against " << t;
    left -= steps;
  }
  a = single.fields(), b = tiled.fields();
  std::int64_t wrong = 0;
  for (std::size_t f = 0; f < N; ++f)
    for_each_cell(domain.owned(),
                  [&](const Index<D>& i) { wrong += std::memcmp(&at(a[f], i), &at(b[f], i), sizeof(T)) != 0; });
  ASSERT_EQ(wrong, 0) << shape_string<D>(shape) << " on " << test::ranks() << " ranks, depth " << depth
                      << ", tiles of " << shape_string<D>(tile) << ", seed " << seed;
}

template <class T, int D>
void check_stencil(const Index<D>& shape, const PerDim<int, D>& grid, const StencilShape<D>& stencil, int depth,
                   std::uint64_t seed) {
  test::Random random(seed * 31);
  std::vector<double> weights;
  for (std::size_t k = 0; k < stencil.offsets().size(); ++k) weights.push_back(random.real(-0.4, 0.6));
  equals_single_steps<T, D>(
      {"u"}, shape, grid, stencil, depth,
      [&](const Index<D>& s) { return WeightedRow<T, D>(stencil.offsets(), weights, s, seed % 2 == 0); }, seed);
}

template <int D>
void check_all(const std::vector<Index<D>>& grids, int deepest, bool far) {
  std::uint64_t seed = 1000 * D;
  auto all = test::shapes<D>();
  if (far) all.push_back({"star 4", StencilShape<D>::star(4)});
  for (const auto& shape : grids)
    for (const auto& grid : all_process_grids<D>(shape, test::ranks()))
      for (const auto& [name, stencil] : all)
        for (int depth = 2; depth <= deepest; depth += 2) {
          SCOPED_TRACE(name);
          ++seed;
          if (test::ranks() > 3 && seed % 4) continue;  // there are many grids of ranks
          seed % 3 ? check_stencil<double, D>(shape, grid, stencil, depth, seed)
                   : check_stencil<float, D>(shape, grid, stencil, depth, seed);
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(TimeTiles, HaveTheBitsOfSingleSteps) {
  check_all<1>({{61}, {13}, {700}}, 6, true);
  check_all<2>({{19, 37}, {11, 9}}, 6, true);
  check_all<3>({{11, 9, 23}}, 4, true);
  check_all<4>({{5, 6, 4, 11}}, 2, false);
}

template <int D>
void check_two_fields(const Index<D>& shape) {
  std::uint64_t seed = 1;
  const auto make_row = [](const Index<D>& stride) {
    CellGeometry<D> g;
    g.stride = stride;
    for (int j = 0; j < D; ++j) g.inverse[j] = 2.0 + j, g.inverse_square[j] = g.inverse[j] * g.inverse[j];
    using Point = detail::CellPoint<GrayScott, double, D>;
    return detail::CellRow<Point>(Point({}, g, 0.5), {true, true});
  };
  for (const auto& grid : all_process_grids<D>(shape, test::ranks()))
    for (const int depth : {2, 3, 7})
      equals_single_steps<double, D, 2>({"u", "v"}, shape, grid, StencilShape<D>::star(1), depth, make_row, seed++);
}

TEST(TimeTiles, HaveTheBitsOfSingleStepsForSeveralFields) {
  check_two_fields<2>({17, 21});
  check_two_fields<3>({9, 8, 12});
}

/// Blocks that fill a quarter of the cache: all sizes of tiles are taken in turns, with and without a change sum.
TEST(TimeTiles, OfEachSizeThatIsTriedOutHaveTheSameBits) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {900, 700}, {.periodic = {true, true}});
  const auto offsets = moore<2>(1, Self::include);
  const auto stepper = [&](int depth) {
    return StateStepper<double, 2>(
        "u", domain, StencilShape<2>::of(offsets), BoundaryRules<2>{}, depth,
        [&](const Index<2>& s) {
          return WeightedRow<double, 2>(offsets, {.1, .12, .09, .11, .13, .1, .08, .14, .12}, s);
        },
        Exchange::coalesced_packed);
  };
  auto single = stepper(1), tiled = stepper(4);
  for_each_cell(domain.owned(), [&](const Index<2>& i) {
    const auto l = static_cast<std::uint64_t>(linear_index(domain.global(), i));
    single.field().at(i) = tiled.field().at(i) = test::Random(l).real(0, 1);
  });
  std::set<Index<2>> sizes;
  for (int block = 0; block < 28; ++block) {
    const bool change = block % 2 == 1;
    const double s = single.advance(4, change), t = tiled.advance(4, change);
    ASSERT_EQ(std::memcmp(&s, &t, sizeof s), 0) << "change sum: " << s << " against " << t;
    sizes.insert(tiled.time_tile());
  }
  EXPECT_EQ(sizes.size(), 3);
  std::int64_t wrong = 0;
  for_each_cell(domain.owned(), [&](const Index<2>& i) {
    wrong += std::memcmp(&single.field().at(i), &tiled.field().at(i), sizeof(double)) != 0;
  });
  EXPECT_EQ(wrong, 0);
}

/// A kernel that is told where its row begins.
struct IndexedRow {
  std::int64_t stride;
  void operator()(const double* in, double* out, std::int64_t n, const Index<2>& i) const {
    for (std::int64_t x = 0; x < n; ++x)
      out[x] = 0.25 * (((in[x - stride] + in[x + stride]) + in[x - 1]) + in[x + 1]) +
               1e-3 * static_cast<double>(((i[0] + 64) * 7 + (i[1] + 64 + x)) % 17);
  }
};

/// A kernel that says for which cells of rows it was called.
class SeenRow final : public RowKernel<double, 2> {
 public:
  using Seen = std::pair<std::int64_t, std::int64_t>;
  SeenRow(std::int64_t stride, bool any, Seen* seen) : stride_(stride), any_(any), seen_(seen) {}
  void run(const double* const* in, std::int64_t at, double* const* out, std::int64_t to, const CellRows& rows,
           const Index<2>& i) const override {
    *seen_ = {std::min(seen_->first, i[1]), std::max(seen_->second, i[1] + rows.cells)};
    rows.for_each<2>(i, [&](std::int64_t k, const Index<2>&) {
      const double* const u = in[0] + at + k;
      for (std::int64_t x = 0; x < rows.cells; ++x) out[0][to + k + x] = 0.5 * (u[x - stride_] + u[x + 1]);
    });
  }
  bool takes_any_value() const override { return any_; }

 private:
  std::int64_t stride_;
  bool any_;
  Seen* seen_;
};

TEST(TimeTiles, UpdateWholeLinesInGhostsWhereTheKernelTakesAnyValue) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {24, 40}, {.periodic = {true, true}});
  const std::int64_t low = domain.owned().low[1], high = domain.owned().high[1];
  for (const bool any : {false, true}) {
    SeenRow::Seen seen{1000, -1000};
    StateStepper<double, 2> stepper(
        "u", domain, StencilShape<2>::star(1), BoundaryRules<2>{}, 4,
        [&](const Index<2>& stride) { return SeenRow(stride[0], any, &seen); }, Exchange::coalesced_packed);
    stepper.advance(8, false);
    EXPECT_EQ(seen.first, any ? low - 8 : low - 3);
    EXPECT_EQ(seen.second, any ? low + (high + 3 - low + 7) / 8 * 8 : high + 3);
  }
}

TEST(TimeTiles, TellKernelsWhereARowBegins) {
  // Rows begin anywhere in a cache line, so that some are cut in two. Not periodic: the index is that of the cell.
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    test::Random random(seed);
    bool closed = true;  // as random_rules will draw them
    for (const auto& side : random_rules<2>(random).low) closed = closed && side.kind != Boundary::periodic;
    if (closed)
      equals_single_steps<double, 2>(
          {"u"}, {23, 150}, {1, test::ranks()}, StencilShape<2>::star(1), 4,
          [](const Index<2>& s) { return IndexedRow{s[0]}; }, seed);
  }
}

/// Calls that end in the middle of a block of steps do not cut all later blocks in two.
TEST(TimeTiles, AreWholeAgainAfterAShorterCall) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {64, 48}, {.periodic = {true, true}});
  StateStepper<double, 2> stepper(
      "u", domain, StencilShape<2>::star(1), BoundaryRules<2>{}, 4,
      [](const Index<2>& s) { return IndexedRow{s[0]}; }, Exchange::coalesced);
  PhaseClock clock;
  stepper.time_phases(&clock);
  const auto passes = [&] {  // so far
    const double each = clock.seconds_each(Phase::sweep);
    return each > 0 ? std::lround(clock.seconds(Phase::sweep) / each) : 0;
  };
  stepper.advance(1, false);
  EXPECT_EQ(passes(), 1);
  for (int k = 0; k < 5; ++k) stepper.advance(4, false);
  EXPECT_EQ(passes(), 6);
  for (int k = 0; k < 8; ++k) stepper.advance(1, false);  // here every ghost is used
  EXPECT_EQ(passes(), 14);
  stepper.advance(3, false);
  stepper.advance(9, true);
  EXPECT_EQ(passes(), 18);
}

}  // namespace
}  // namespace isohalo
