/// Sweeps give the same bits whatever they do about memory, and write the cells of their region alone.

#include "stencils/kernel_sweep.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "framework/halo/field.hpp"
#include "stencils/cell_solver.hpp"
#include "stencils/probe_cell.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/row_terms.hpp"
#include "stencils/solvers/advection.hpp"
#include "stencils/solvers/heat_in_field.hpp"
#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// Each array gets a mix of neighbors in its own one and of the next array's cell; with `adds` of what was there.
template <class T, int D>
class MixingKernel final : public RowKernel<T, D> {
 public:
  MixingKernel(std::size_t arrays, std::int64_t away, bool adds) : arrays_(arrays), away_(away), adds_(adds) {}
  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>& i) const override {
    for (std::size_t f = 0; f < arrays_; ++f)
      for (std::int64_t k = 0; k < rows.count; ++k)
        for (std::int64_t x = 0; x < rows.cells; ++x) {
          const std::int64_t here = k * rows.apart + x;
          const T *const u = in[f] + at + here, next = in[(f + 1) % arrays_][at + here];
          const std::int64_t row = D > 1 ? i[D > 1 ? D - 2 : 0] + k : 0;
          const T value = mixed(u[-1], u[away_], next, static_cast<T>(i[D - 1] + x + 5 * row));
          out[f][to + here] = adds_ ? mixed(value, out[f][to + here], next, T(1)) : value;
        }
  }
  bool reads_what_it_writes() const override { return adds_; }

 private:
  static T mixed(T a, T b, T c, T d) {
    if constexpr (std::is_same_v<T, std::uint8_t>)
      return static_cast<T>((a ^ b ^ c ^ d) & 1);
    else
      return a * T(0.5) + b * T(0.25) + c * T(0.125) + d;
  }

  std::size_t arrays_;
  std::int64_t away_;
  bool adds_;
};

template <class T, int D>
class Fields {
 public:
  Fields(const CartesianDomain<D>& domain, std::size_t arrays, std::uint64_t seed) {
    const Index<D> ghosts = index_of<D>(2);
    test::Random random(seed);
    for (std::size_t f = 0; f < arrays; ++f) {
      fields_.emplace_back("u", domain.owned(), ghosts, ghosts);
      const ArrayRef<T, D> u = fields_.back().ref();
      cells_ = domain.owned().grown(ghosts, ghosts);
      for_each_cell(cells_, [&](const Index<D>& i) {
        u.at(i) = static_cast<T>(static_cast<double>(random.in(0, 1)) + half(random));
      });
      data_.push_back(u.data);
    }
  }
  /// Makes array f a mask: few cells of some rows.
  void mask(std::size_t f) {
    const ArrayRef<T, D> u = fields_[f].ref();
    for_each_cell(cells_, [&](const Index<D>& i) {
      u.at(i) = T((i[0] + 2) % 7 == 0 && (i[D - 1] + 2) % 61 == 0 ? (i[D - 1] % 2 ? -0.5 : 3)
                  : i[0] % 2                                      ? -0.0
                                                                  : 0.0);
    });
  }
  const ArrayRef<T, D>& like() const { return fields_[0].ref(); }
  std::span<T* const> data() const { return data_; }
  double at(std::size_t f, const Index<D>& i) const { return static_cast<double>(fields_[f].at(i)); }
  std::int64_t differ(const Fields& other) const {
    std::int64_t n = 0;
    for (std::size_t f = 0; f < fields_.size(); ++f)
      for_each_cell(cells_, [&](const Index<D>& i) {
        n += std::memcmp(&fields_[f].at(i), &other.fields_[f].at(i), sizeof(T)) != 0;
      });
    return n;
  }

 private:
  static double half(test::Random& random) { return std::is_same_v<T, std::uint8_t> ? 0 : random.real(-0.5, 0.5); }

  std::vector<Field<T, D>> fields_;
  std::vector<T*> data_;
  Box<D> cells_;
};

/// Two arrays in place, with neighbors in a third one, and the square of the first, which is NaN where the second
/// is not finite.
template <class T>
struct Descent {
  const T* p;
  std::int64_t away;
  T *r, *u;
  struct Values {
    T r, u;
  };
  Values values(std::int64_t k) const { return {r[k] - T(0.5) * (p[k - 1] + p[k + away]), u[k] + T(0.25) * p[k]}; }
  double term(std::int64_t, const Values& v) const {
    return static_cast<double>(v.r) * static_cast<double>(v.r) + 0 * static_cast<double>(v.u);
  }
  void store(std::int64_t k, const Values& v) const { r[k] = v.r, u[k] = v.u; }
};

/// An update in place, the sums of its terms and of its second array, against the same cell by cell.
template <class T, int D>
void check_in_place(CellSum<D>& sum, const Fields<T, D>& in, const Fetch& how) {
  const Fields<T, D> out(sum.domain(), 2, 99), expected(sum.domain(), 2, 99);
  const std::int64_t away = D > 1 ? in.like().stride[0] : 1;
  const auto updates = [&](const Fields<T, D>& f) {
    return Descent<T>{in.data()[0], away, f.data()[0], f.data()[1]};
  };
  CellSum<D> second(sum.domain());
  std::vector<double> scratch;
  const detail::RowsInPlace<T, D, Descent<T>> kernel(updates(out));
  sweep_with_terms<T, D>(sum, &second, scratch, {kernel, in.like(), in.data().first(1), out.data()}, how);
  const double terms = sum.combine(), values = second.combine();
  for_each_cell(sum.domain().owned(), [&, one = updates(expected)](const Index<D>& i) {
    const std::int64_t k = detail::place_of(in.like(), i);
    one.store(k, one.values(k));
  });
  EXPECT_EQ(out.differ(expected), 0);
  EXPECT_EQ(terms, sum.reduce([&](const Index<D>& i) { return out.at(0, i) * out.at(0, i) + 0 * out.at(1, i); }));
  EXPECT_EQ(values, sum.reduce([&](const Index<D>& i) { return out.at(1, i); }));
}

template <class T, int D>
void check(const Index<D>& shape, std::size_t arrays, std::uint64_t seed) {
  SCOPED_TRACE(shape_string<D>(shape) + ", arrays " + std::to_string(arrays) + ", seed " + std::to_string(seed));
  test::Random random(seed);
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape);
  const bool adds = seed % 4 == 0;
  Index<D> low, high;
  for (int j = 0; j < D; ++j) low[j] = random.in(0, 1), high[j] = random.in(0, 1);
  const std::vector<Box<D>> boxes{domain.owned().grown(low, high)};
  const SweepRegion<D> whole(boxes), in_blocks(boxes, 3, 1 << 20);
  if (D > 2 && boxes[0].extent(D - 2) > 16) {
    EXPECT_GT(in_blocks.work().back().block, whole.work().back().block);
  }
  ChangeSum<T, D> sum(domain);
  std::vector<double> scratch;
  const Fields<T, D> in(domain, arrays, seed + 1), swept(domain, arrays, seed + 2),
      summed(domain, arrays, seed + 2);
  double expected = 0;
  for (std::size_t way = 0; way < Fetch::kWaysOfSums; ++way) {
    const Fetch how = Fetch::by_way(way, 0);
    const Fields<T, D> a(domain, arrays, seed + 2), b(domain, arrays, seed + 2);
    const bool first = way == 0;
    const Fields<T, D>&one = first ? swept : a, &two = first ? summed : b;
    const std::int64_t away = D > 1 ? in.like().stride[0] : 1;
    const MixingKernel<T, D> kernel(arrays, away, adds);
    sweep(first ? whole : in_blocks, RowUpdate<T, D>{kernel, in.like(), in.data(), one.data()}, how);
    sweep_with_change<T, D>(sum, scratch, RowUpdate<T, D>{kernel, in.like(), in.data(), two.data()}, in.data(),
                            how);
    const double change = sum.combine();
    if constexpr (!std::is_same_v<T, std::uint8_t>)
      if (arrays == 2) check_in_place<T, D>(sum, in, Fetch::by_way(way, away));
    if (first) {
      expected = change;
      EXPECT_NE(one.differ(a), 0) << "the sweep has changed nothing";
      continue;
    }
    EXPECT_EQ(one.differ(swept), 0) << "sweep, way " << way;
    EXPECT_EQ(two.differ(summed), 0) << "with change, way " << way;
    EXPECT_EQ(std::memcmp(&change, &expected, sizeof change), 0) << change << " against " << expected;
  }
}

TEST(KernelSweep, SameBitsWhateverItDoesAboutMemory) {
  std::uint64_t seed = 1;
  for (const std::int64_t n : {9, 64, 333, 1500})
    for (const std::size_t arrays : {1, 2, 4, 5}) {
      check<double, 1>({n * 8}, arrays, seed++);
      check<double, 2>({12 + n % 7, n}, arrays, seed++);
      check<float, 2>({10, n + 1}, arrays, seed++);
      check<double, 3>({7, 37, n % 400}, arrays, seed++);
      check<float, 3>({8, 20, n % 200}, arrays, seed++);
      check<double, 4>({5, 3, 18, n % 50 + 1}, arrays, seed++);
      if (arrays == 1) check<std::uint8_t, 2>({17, n * 2}, arrays, seed++);
      if (arrays == 1) check<std::uint8_t, 2>({5, n * 7}, arrays, seed++);
    }
}

/// Kernels that go through memory line by line, each way against the first one: `written` arrays, those that are
/// read last where they are replaced. Is the last that is read a mask?
template <class T, int D>
void check_lines(const CartesianDomain<D>& domain, const RowKernel<T, D>& kernel, std::size_t reads,
                 std::size_t written, bool replaces, bool masked = false) {
  ASSERT_TRUE(kernel.streams());
  const SweepRegion<D> region({domain.owned().grown(index_of<D>(1), index_of<D>(0))});
  ChangeSum<T, D> sum(domain);
  std::vector<double> scratch;
  std::vector<Fields<T, D>> first;
  double expected = 0;
  for (std::size_t way = 0; way < Fetch::kWaysOfSums; ++way) {
    Fields<T, D> in(domain, reads, 7), again(domain, reads, 7), out(domain, written, 8), summed(domain, written, 8);
    if (masked) in.mask(reads - 1), again.mask(reads - 1);
    Fields<T, D>&swept = replaces ? in : out, &changed = replaces ? again : summed;
    const Fetch how = Fetch::by_way(way, D > 1 ? in.like().stride[0] : 0);
    sweep(region, RowUpdate<T, D>{kernel, in.like(), in.data(), swept.data().last(written)}, how);
    sweep_with_change<T, D>(sum, scratch,
                            RowUpdate<T, D>{kernel, in.like(), again.data(), changed.data().last(written)},
                            again.data().first(written), how);
    const double change = sum.combine();
    if (way == 0) {
      expected = change;
      EXPECT_NE(swept.differ(Fields<T, D>(domain, replaces ? reads : written, replaces ? 7 : 8)), 0);
      first.push_back(std::move(swept));
      first.push_back(std::move(changed));
      continue;
    }
    EXPECT_EQ(swept.differ(first[0]), 0) << "sweep, way " << way;
    EXPECT_EQ(changed.differ(first[1]), 0) << "with change, way " << way;
    EXPECT_EQ(std::memcmp(&change, &expected, sizeof change), 0)
        << "way " << way << ": " << change << " against " << expected;
  }
}

/// Two fields that act on each other.
struct Pair {
  static constexpr auto fields = names("u", "v");
  template <class Cell>
  auto operator()(const Cell& u, const Cell& v, double dt) const {
    return cells(u() + dt * (laplace(u) - u() * v()), v() + dt * (0.5 * laplace(v) + u() * v()));
  }
};
/// One with a second time level, which is replaced.
struct Leap {
  static constexpr auto fields = names("u");
  static constexpr bool before = true;
  template <class Cell>
  double operator()(const Cell& u, const Cell& old, double dt) const {
    return (2 * u() - old()) + dt * laplace(u);
  }
};

template <class T, int D>
void check_lines(const Index<D>& shape) {
  SCOPED_TRACE(shape_string<D>(shape) + ", bytes of a value " + std::to_string(sizeof(T)));
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape);
  const Fields<T, D> like(domain, 1, 1);
  const Index<D>& stride = like.like().stride;
  PerDim<T, D> q;
  CellGeometry<D> geometry{.stride = stride};
  for (int j = 0; j < D; ++j) q[j] = T(0.1) + T(0.03) * T(j), geometry.inverse_square[j] = 0.2 + 0.1 * j;
  check_lines<T, D>(domain, PointRow<T, D, HeatPoint>({Laplacian<T, D>(q, stride)}), 1, 1, false);
  check_lines<T, D>(domain, PointRow<T, D, JacobiPoint>({Laplacian<T, D>(q, stride), T(0.7), T(3)}, like.like()), 1,
                    1, false);
  check_lines<T, D>(domain, detail::CellRow<detail::CellPoint<Pair, T, D>>({Pair{}, geometry, 0.1}, {true, true}),
                    2, 2, false);
  check_lines<T, D>(domain, detail::CellRow<detail::CellPoint<Leap, T, D>>({Leap{}, geometry, 0.1}, {true, false}),
                    2, 1, true);
  std::vector<std::int64_t> around;
  for (const std::int64_t s : stride) around.insert(around.end(), {-s, s});
  for (const detail::Mask mask : {detail::Mask::keep, detail::Mask::mirror}) {
    using Row = detail::CellRow<detail::CellPoint<Pair, T, D>>;
    auto row = std::make_unique<Row>(detail::CellPoint<Pair, T, D>{Pair{}, geometry, 0.1}, std::array{true, true});
    check_lines<T, D>(domain, detail::AmendedRow<T, D, 2>(std::move(row), {false, mask, around}), 3, 2, false,
                      true);
  }
  Offsets<D> list;
  std::vector<double> weights;
  for (int k = 0; k < 9; ++k) {
    Index<D> offset{};
    offset[k % D] = k % 3 - 1;
    offset[D - 1] += k / 5;
    list.push_back(offset);
    weights.push_back(0.3 - 0.07 * k);
    check_lines<T, D>(domain, WeightedRow<T, D>(list, weights, stride), 1, 1, false);
  }
  const Offsets<D> box = moore<D>(1, Self::include);
  weights.clear();
  for (std::size_t k = 0; k < box.size(); ++k) weights.push_back(0.02 + 0.001 * static_cast<double>(k));
  check_lines<T, D>(domain, WeightedRow<T, D>(box, weights, stride, true), 1, 1, false);
}

TEST(KernelSweep, SameBitsLineByLine) {
  for (const std::int64_t n : {1, 7, 8, 17, 64, 333}) {
    check_lines<double, 2>({21, n});
    check_lines<float, 2>({9, n + 3});
    check_lines<double, 3>({3, 22, n});
    check_lines<float, 4>({2, 3, 11, n});
  }
  check_lines<double, 2>({6, 9001});  // a row fetches for its own end
  check_lines<double, 3>({1, 3, 9001});
  check_lines<float, 4>({1, 2, 3, 300});  // several times as many lines as are taken at a time
}

// Of fields a step before, of velocities: no neighbors, for which memory would be fetched further ahead.
TEST(CellRow, KnowsInWhichArraysNeighborsAreRead) {
  const CellGeometry<2> geometry{.stride = {16, 1}};
  const detail::CellPoint<Pair, double, 2> pair({}, geometry, 0.1);
  EXPECT_EQ(detail::reads_beside(pair), (std::array{true, true}));
  const detail::CellPoint<Leap, double, 2> leap({}, geometry, 0.1);
  EXPECT_EQ(detail::reads_beside(leap), (std::array{true, false}));
  const detail::CellPoint<AdvectionUpwind, double, 2, Given::fields> carried({}, geometry, 0.1);
  EXPECT_EQ(detail::reads_beside(carried), (std::array{true, false, false}));
  const detail::CellPoint<HeatInField, float, 2, Given::fields> heated({}, geometry, 0.1);
  EXPECT_EQ(detail::reads_beside(heated), (std::array{true, true}));
}

/// Terms of two arrays whose rows lie differently far apart.
template <int D>
void check_terms(const Index<D>& shape) {
  SCOPED_TRACE(shape_string<D>(shape));
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape);
  const Field<double, D> a("a", domain.owned(), {}, {}), b("b", domain.owned(), index_of<D>(1), index_of<D>(3));
  test::Random random(static_cast<std::uint64_t>(domain.rank() + 1));
  for_each_cell(domain.owned(),
                [&](const Index<D>& i) { a.at(i) = random.real(-1, 1), b.at(i) = random.real(-1, 1); });
  CellSum<D> sum(domain);
  std::vector<double> scratch;
  const auto products = [&](const Index<D>& i) {
    return [u = &a.at(i), v = &b.at(i)](std::int64_t x) { return u[x] * v[x]; };
  };
  form_tile_values("terms", sum, scratch,
                   [&](const Index<D>& i, std::int64_t) { return RowTerms<D, decltype(products)>(products, i); });
  const double added = sum.combine();
  EXPECT_EQ(added, sum.reduce([&](const Index<D>& i) { return a.at(i) * b.at(i); }));
}

TEST(RowTerms, AreAddedLikeValues) {
  check_terms<1>({5000});
  check_terms<2>({37, 1500});
  check_terms<2>({20, 31});
  check_terms<3>({9, 17, 70});
  check_terms<4>({3, 5, 18, 33});
}

TEST(RowBlocks, HaveEachRowOnceAndSayWhichComesLater) {
  const Box<4> box{{1, 2, 3, 4}, {4, 4, 45, 9}};
  std::vector<Index<4>> rows, later;
  std::size_t blocks = 0;
  detail::for_each_block(box, 16, [&](const Box<4>& block) {
    ++blocks;
    const std::size_t first = rows.size();
    for_each_row(block, [&](const Index<4>& i) {
      rows.push_back(i);
      later.push_back(detail::row_later(block, i, 5));
    });
    for (std::size_t k = first; k < rows.size(); ++k)
      EXPECT_EQ(later[k], k + 5 < rows.size() ? rows[k + 5] : rows[k]);
  });
  EXPECT_EQ(blocks, 3U);
  EXPECT_EQ(rows.size(), 3U * 2 * 42);
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(std::unique(rows.begin(), rows.end()), rows.end());
  // Half a cache of 3 planes: 64 of these rows of 128 cells in 1 MiB.
  const std::int64_t rows_of_mib = detail::rows_of_block<3>({500, 500, 128}, 3, 8);
  EXPECT_EQ(rows_of_mib % 16, 0);
  EXPECT_LE(rows_of_mib * 3 * 128 * 8, second_level_cache() / 2);
  EXPECT_EQ(detail::rows_of_block<3>({500, 500, 1 << 20}, 3, 8), 16);
}

}  // namespace
}  // namespace isohalo
