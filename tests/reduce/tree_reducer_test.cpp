/// The reducer over MPI: every process grid and tolerance, values and operations that show any change of order.

#include "framework/reduce/tree_reducer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string_view>
#include <thread>

#include "datatypes/mix.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/tree_by_definition.hpp"

namespace isohalo {
namespace {

/// A user's struct: a sum, a maximum and an order-sensitive hash in one reduction.
struct Triple {
  double sum, most;
  std::uint64_t hash;
  bool operator==(const Triple&) const = default;
};
struct TripleOp {
  Triple operator()(const Triple& a, const Triple& b) const {
    return {a.sum + b.sum, Max()(a.most, b.most), mix64(a.hash * 3 + mix64(b.hash + 17))};
  }
};

double hard_value(std::int64_t l) {  // cancellation over 30 orders of magnitude, both signs
  const std::uint64_t z = mix64(static_cast<std::uint64_t>(l) * kGolden);
  return std::ldexp(static_cast<double>(z >> 12) * 0x1p-52 - 0.5, static_cast<int>(z % 101) - 50);
}

/// Every method, and results on all ranks and on one.
std::vector<ReductionOptions> options_to_try(int ranks) {
  std::vector<ReductionOptions> list;
  for (const ReductionMethod method : {ReductionMethod::tree, ReductionMethod::binary_tree})
    for (const int root : {-1, ranks - 1}) list.push_back({method, "auto", false, true, root});
  PlanOptions plan;
  plan.for_sets = true;
  for (const Plan& p : plan_candidates(ranks, plan, 3)) list.push_back({ReductionMethod::tree, p.schedule.text()});
  for (const int base : {2, 3}) list.push_back({ReductionMethod::tree, dissemination(ranks, base).text(), true});
  return list;
}

/// The rows of value(i).
template <int D, class Value>
auto rows_of(const Value& value) {
  return [&value](const Index<D>& i, std::int64_t) {
    return [&value, i](std::int64_t x) {
      Index<D> cell = i;
      cell[D - 1] += x;
      return value(cell);
    };
  };
}

/// What a fused sweep does: one band after the other, here from the last to the first.
template <int D, class Value>
Triple reduce_by_bands(TreeReducer<Triple, D, TripleOp>& reducer, const Value& value) {
  std::vector<Triple> scratch(static_cast<std::size_t>(reducer.scratch_size()));
  for (std::int64_t b = reducer.bands() - 1; b >= 0; --b) reducer.run_band(b, scratch.data(), rows_of<D>(value));
  return reducer.combine();
}

/// What a sweep of several fields does: some planes of dimension 0 at a time, here 1, 2, 3 and so on, and in two
/// columns that meet where tiles do.
template <int D, class Value>
Triple reduce_by_planes(TreeReducer<Triple, D, TripleOp>& reducer, const Value& value) requires(D > 1) {
  const Box<D> owned = reducer.domain().owned();
  constexpr int cut = D - 2 > 0 ? D - 2 : 1;
  const std::int64_t tile = reducer.tile()[cut], middle = (owned.low[cut] + owned.high[cut]) / 2 / tile * tile;
  for (const bool low : {true, false}) {
    Box<D> column = owned;
    (low ? column.high : column.low)[cut] = std::clamp(middle, owned.low[cut], owned.high[cut]);
    if (column.empty()) continue;
    Box<D> plane = column;
    plane.high[0] = plane.low[0] + 1;
    std::vector<Triple> lanes(static_cast<std::size_t>(reducer.scratch_size(plane)));
    for (std::int64_t thick = 1; plane.low[0] < owned.high[0]; plane.low[0] = plane.high[0], ++thick) {
      plane.high[0] = std::min(plane.low[0] + thick, owned.high[0]);
      reducer.run_planes(plane, lanes.data(), rows_of<D>(value));
    }
  }
  return reducer.combine();
}

template <int D, class Value>
Triple reduce_in(std::string_view way, TreeReducer<Triple, D, TripleOp>& reducer, const Value& value) {
  if constexpr (D > 1)
    if (way == "by planes") return reduce_by_planes(reducer, value);
  return way == "as one" ? reducer.reduce(value) : reduce_by_bands(reducer, value);
}

template <int D>
void check(const Index<D>& shape, const Index<D>& tile) {
  const Box<D> global = box_of_shape<D>(shape);
  std::vector<Triple> all;
  for (std::int64_t l = 0; l < global.cells(); ++l)
    all.push_back({hard_value(l), hard_value(l), static_cast<std::uint64_t>(l)});
  const Triple expected = test::reduce_by_definition<Triple, D>(shape, tile, all, TripleOp());
  for (const auto& grid : all_process_grids<D>(shape, test::ranks()))
    for (double tolerance : {0.0, 0.02, 0.4}) {
      DomainOptions<D> o;
      o.process_grid = grid;
      o.alignment_tolerance = tolerance;
      const CartesianDomain<D> domain(MPI_COMM_WORLD, shape, o);
      TreeReducer<Triple, D, TripleOp> reducer(domain, {}, tile);
      const auto value = [&](const Index<D>& i) { return all[static_cast<std::size_t>(linear_index(global, i))]; };
      for (const ReductionOptions& options : options_to_try(test::ranks())) {
        reducer.reduce_by(options);
        for (const char* way : {"as one", "by bands", "by planes"}) {
          const Triple got = reduce_in(way, reducer, value);
          const bool mine = options.root < 0 || options.root == test::rank();
          EXPECT_TRUE(!mine || got == expected)
              << shape_string<D>(shape) << " tolerance " << tolerance << " method " << to_text(options.method)
              << " schedule " << options.schedule << " root " << options.root << " " << way;
        }
      }
    }
}

TEST(TreeReducer, AnyGridIn1D) {
  check<1>({1000}, {256}), check<1>({17}, {4}), check<1>({6}, {256});
}
TEST(TreeReducer, AnyGridIn2D) {
  check<2>({61, 35}, {16, 16}), check<2>({7, 130}, {16, 16}), check<2>({6, 6}, {1, 1});
}
TEST(TreeReducer, AnyGridIn3D) {
  check<3>({9, 11, 37}, {4, 4, 16}), check<3>({6, 1, 7}, {4, 4, 16});
}
TEST(TreeReducer, MoreLinesThanOneGroupOfAPass) {  // rows so long that a few lines fill the group
  const CartesianDomain<3> domain(MPI_COMM_WORLD, {3, 30, 4000}, {.process_grid = {{1, 1, test::ranks()}}});
  TreeReducer<double, 3, Sum> reducer(domain);
  std::vector<double> all;
  for (std::int64_t l = 0; l < domain.global().cells(); ++l) all.push_back(hard_value(l));
  const double expected = test::reduce_by_definition<double, 3>({3, 30, 4000}, default_tile<3>(), all, Sum());
  EXPECT_EQ(reducer.reduce(
                [&](const Index<3>& i) { return all[static_cast<std::size_t>(linear_index(domain.global(), i))]; }),
            expected);
}
TEST(TreeReducer, AnyGridIn4D) {
  check<4>({5, 4, 6, 19}, {2, 2, 4, 16});
}

TEST(TreeReducer, CheckValueOfTheDesign) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {61, 35});
  TreeReducer<double, 2, Sum> sum(domain);
  const double got = sum.reduce([&](const Index<2>& i) {
    const auto l = static_cast<std::uint64_t>(linear_index(domain.global(), i));
    return -1 + 2 * (static_cast<double>(mix64(42 + (l + 1) * kGolden) >> 11) * 0x1p-53);
  });
  EXPECT_EQ(got, 0x1.db4e67b8c54d4p+2);
}

/// Returns another type than it combines.
struct AddWidely {
  double operator()(double a, double b) const { return a + b; }
};
TEST(TreeReducer, RoundsToItsTypeAfterEachOperation) {
  const Index<2> shape{61, 35};
  std::vector<float> all;
  for (std::int64_t l = 0; l < shape[0] * shape[1]; ++l) all.push_back(static_cast<float>(hard_value(l)));
  const float expected = test::reduce_by_definition<float, 2>(
      shape, default_tile<2>(), all, [](float a, float b) { return static_cast<float>(AddWidely()(a, b)); });
  for (const auto& grid : all_process_grids<2>(shape, test::ranks())) {
    const CartesianDomain<2> domain(MPI_COMM_WORLD, shape, {.process_grid = grid, .alignment_tolerance = 0});
    TreeReducer<float, 2, AddWidely> sum(domain);
    const float got = sum.reduce([&](const Index<2>& i) {
      return static_cast<double>(all[static_cast<std::size_t>(linear_index(domain.global(), i))]);
    });
    EXPECT_EQ(got, expected);
  }
}

/// A row that may be moved, but not be copied; and what each row is told of later ones.
TEST(TreeReducer, AsksForRowsOnce) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {32, 40});
  TreeReducer<double, 2, Sum> sum(domain);
  std::set<std::int64_t> told;
  std::vector<double> scratch(static_cast<std::size_t>(sum.scratch_size()));
  for (std::int64_t b = 0; b < sum.bands(); ++b)
    sum.run_band(b, scratch.data(), [&](const Index<2>& i, std::int64_t n, const Index<2>& later) {
      told.insert(later[0]);
      auto row = std::make_unique<std::vector<double>>();
      for (std::int64_t x = 0; x < n; ++x)
        row->push_back(hard_value(linear_index(domain.global(), behind<2>(i, x))));
      return [row = std::move(row)](std::int64_t x) { return (*row)[static_cast<std::size_t>(x)]; };
    });
  const double got = sum.combine();
  EXPECT_EQ(got, sum.reduce([&](const Index<2>& i) { return hard_value(linear_index(domain.global(), i)); }));
  if (test::ranks() == 1) {
    EXPECT_GT(told.size(), 24u);  // where four are taken together, too, each of its own
  }
}

TEST(TreeReducer, TilesMayBeFarLargerThanTheGrid) {
  const CartesianDomain<3> domain(MPI_COMM_WORLD, {10, 9, 11});
  const auto value = [&](const Index<3>& i) { return hard_value(linear_index(domain.global(), i)); };
  TreeReducer<double, 3, Sum> small(domain, {}, {16, 16, 16});  // one tile as well
  for (const std::int64_t extent : {std::int64_t{1} << 12, std::int64_t{1} << 20}) {
    TreeReducer<double, 3, Sum> large(domain, {}, index_of<3>(extent));
    EXPECT_EQ(large.reduce(value), small.reduce(value)) << extent;
  }
}

TEST(TreeReducer, SignedZerosNanAndInfinity) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {20, 21});
  TreeReducer<double, 2, Sum> sum(domain);
  TreeReducer<double, 2, Min> least(domain);
  TreeReducer<double, 2, Max> most(domain);
  EXPECT_TRUE(std::signbit(sum.reduce([](const Index<2>&) { return -0.0; })));  // no positive zero is mixed in
  const auto special = [&](double v) {
    return [&domain, v](const Index<2>& i) {
      return i == Index<2>{19, 3} ? v : static_cast<double>(linear_index(domain.global(), i));
    };
  };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(sum.reduce(special(nan))));
  EXPECT_TRUE(std::isnan(least.reduce(special(nan))));
  EXPECT_TRUE(std::isnan(most.reduce(special(nan))));
  EXPECT_EQ(most.reduce(special(infinity)), infinity);
  EXPECT_EQ(least.reduce(special(-infinity)), -infinity);
  EXPECT_EQ(most.reduce(special(0)), 419.0);
  EXPECT_EQ(least.reduce(special(-7)), -7.0);
}

template <int D>
void check_bands(const Index<D>& shape, const Index<D>& tile) {
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape);
  TreeReducer<double, D, Sum> reducer(domain, {}, tile);
  const auto value = [&](const Index<D>& i) { return hard_value(linear_index(domain.global(), i)); };
  const double expected = reducer.reduce(value);
  std::vector<double> scratch(static_cast<std::size_t>(reducer.scratch_size()));
  std::set<Index<D>> first;
  std::int64_t cells = 0;
  for (std::int64_t b = reducer.bands() - 1; b >= 0; --b) {
    cells += reducer.band_cells(b).cells();
    first.insert(reducer.band_cells(b).low);
    reducer.run_band(b, scratch.data(), [&](const Index<D>& i, std::int64_t) {
      return [&value, i](std::int64_t x) {
        Index<D> k = i;
        k[D - 1] += x;
        return value(k);
      };
    });
  }
  EXPECT_EQ(cells, domain.owned().cells());
  EXPECT_EQ(static_cast<std::int64_t>(first.size()), reducer.bands());
  EXPECT_EQ(reducer.combine(), expected);
}

TEST(TreeReducer, FusedBandsInAnyOrder) {
  check_bands<3>({13, 10, 40}, default_tile<3>());
  // Of one tile each: more layers than are taken at a time, several bands in each dimension.
  check_bands<3>({40, 3, 5}, {1, 1, 4096});
  check_bands<3>({35, 2, 9000}, {1, 1, 4096});
  check_bands<4>({34, 2, 3, 5}, {1, 1, 1, 4096});
  check_bands<4>({5, 3, 2, 9000}, {2, 1, 1, 4096});
}

TEST(TreeReducer, BandsFromAnyNumberOfThreads) {
  const CartesianDomain<3> domain(MPI_COMM_WORLD, {13, 10, 40});
  TreeReducer<double, 3, Sum> reducer(domain);
  const auto value = [&](const Index<3>& i) { return hard_value(linear_index(domain.global(), i)); };
  const double expected = reducer.reduce(value);
  for (const int threads : {2, 3, 5}) {
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        std::vector<double> scratch(static_cast<std::size_t>(reducer.scratch_size()));
        for (std::int64_t b = t; b < reducer.bands(); b += threads)
          reducer.run_band(b, scratch.data(), [&](const Index<3>& i, std::int64_t) {
            return [&value, i](std::int64_t x) { return value({i[0], i[1], i[2] + x}); };
          });
      });
    for (std::thread& t : team) t.join();
    EXPECT_EQ(reducer.combine(), expected) << threads;
  }
}

TEST(TreeReducer, ArgumentsThatDifferAreNamedOnAllRanks) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {40, 50});
  test::expect_refusal("exact_over_terms is for ArrayReducer", [&] {
    TreeReducer<double, 2, Sum> sum(domain);
    sum.reduce_by({ReductionMethod::exact_over_terms});
  });
  const bool last = test::rank() == test::ranks() - 1;
  if (test::ranks() == 1) return;
  test::expect_refusal("TreeReducer: argument \"tile\" differs between ranks: rank 0 has \"16 16\"", [&] {
    TreeReducer<double, 2, Sum>(domain, {}, last ? Index<2>{8, 16} : Index<2>{16, 16});
  });
  const CartesianDomain<2> other(MPI_COMM_WORLD, {40, 51});
  test::expect_refusal("TreeReducer: argument \"domain\" differs",
                       [&] { TreeReducer<double, 2, Sum>(last ? other : domain); });
  test::expect_refusal("TreeReducer: argument \"operation\" differs", [&] {
    if (last)
      TreeReducer<double, 2, Max> most(domain);
    else
      TreeReducer<double, 2, Sum> sum(domain);
  });
  test::expect_refusal("no power of two", [&] {  // on one rank alone
    TreeReducer<double, 2, Sum>(domain, {}, last ? Index<2>{3, 16} : Index<2>{16, 16});
  });
  TreeReducer<double, 2, Sum> sum(domain);
  test::expect_refusal("argument \"method\" differs",
                       [&] { sum.reduce_by({last ? ReductionMethod::exact_over_tiles : ReductionMethod::tree}); });
  EXPECT_EQ(sum.reduce([](const Index<2>&) { return 1.0; }), 2000.0);
}

}  // namespace
}  // namespace isohalo
