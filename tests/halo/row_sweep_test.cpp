/// RowSweep: the bits of the plain loop in each way that it tries, cells of the region alone, and what it refuses.

#include "framework/halo/row_sweep.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "framework/halo/grid_array.hpp"
#include "framework/halo/halo_plan.hpp"
#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

constexpr int kSteps = 40;  // all ways are tried in the first 36

template <class T>
T mixed(T a, T b, T c, std::int64_t x) {
  return a * T(0.5) + b * T(0.25) + c * T(0.125) + static_cast<T>(x % 7);
}

/// Differs from row to row and from cell to cell.
template <int D>
std::int64_t place(const Index<D>& i) {
  return D == 1 ? i[0] : 1000 * i[0] + 100 * i[D > 1 ? D - 2 : 0] + i[D - 1];
}

/// Arrays of a user's program: padded by GridArray, or a vector whose rows begin anywhere.
template <class T, int D>
struct Arrays {
  Arrays(const Box<D>& mine, std::int64_t width, bool aligned) : array(mine, width) {
    if (aligned) {
      ref = array.ref();
    } else {
      memory.resize(static_cast<std::size_t>(adopted_size(mine, width, 3)) + 1);
      ref = adopt(memory.data() + 1, mine, width, 3);
    }
  }
  GridArray<T, D> array;
  std::vector<T> memory;
  ArrayRef<T, D> ref;
};

/// Steps of a loop by RowSweep and by hand, `depth` of them for each exchange.
template <class T, int D>
void check(const Index<D>& shape, int depth, bool aligned) {
  SCOPED_TRACE(shape_string<D>(shape) + ", depth " + std::to_string(depth));
  DomainOptions<D> options;
  options.periodic.fill(true);
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape, options);
  const auto stencil = StencilShape<D>::star(1);
  HaloPlan<D> halo(domain, stencil, depth);
  const Box<D> mine = domain.owned();
  Arrays<T, D> a(mine, depth, aligned), b(mine, depth, aligned), c(mine, depth, aligned), d(mine, depth, aligned);
  ArrayRef<T, D> now = a.ref, next = b.ref, by_hand = c.ref, after = d.ref;
  for_each_cell(now.allocated(), [&](const Index<D>& i) {
    now.at(i) = by_hand.at(i) = next.at(i) = after.at(i) = std::numeric_limits<T>::quiet_NaN();
  });
  for_each_cell(mine, [&](const Index<D>& i) {
    now.at(i) = by_hand.at(i) = static_cast<T>(linear_index(domain.global(), i) % 1013) / T(7);
  });
  RowSweep<T, D> sweep(stencil);
  const std::int64_t s = now.stride[0];
  for (int step = 0; step < kSteps; ++step) {
    if (step % depth == 0) halo.exchange(now), halo.exchange(by_hand);
    const std::vector<Box<D>> region = halo.region(step % depth + 1);
    sweep(region, now, next, [s](const T* u, T* v, std::int64_t n, const Index<D>& i) {
      for (std::int64_t x = 0; x < n; ++x) v[x] = mixed(u[x - 1], u[x + s], u[x], place<D>(i) + x);
    });
    for (const Box<D>& part : region)
      for_each_cell(part, [&](const Index<D>& i) {
        const T* const u = &by_hand.at(i);
        after.at(i) = mixed(u[-1], u[s], u[0], place<D>(i));
      });
    std::swap(now, next), std::swap(by_hand, after);
  }
  std::int64_t differ = 0;
  for_each_cell(now.allocated(),  // ghosts beyond a region, too: nothing else is written
                [&](const Index<D>& i) { differ += std::memcmp(&now.at(i), &by_hand.at(i), sizeof(T)) != 0; });
  EXPECT_EQ(differ, 0);
}

TEST(RowSweep, HasTheBitsOfThePlainLoop) {
  for (const bool aligned : {true, false})
    for (const int depth : {1, 2, 3}) {
      check<double, 1>({3001}, depth, aligned);
      check<double, 2>({37, 301}, depth, aligned);
      check<float, 2>({19, 1030}, depth, aligned);
      check<double, 3>({13, 17, 70}, depth, aligned);
      check<float, 3>({12, 9, 131}, depth, aligned);
      check<double, 4>({5, 6, 7, 33}, depth, aligned);
    }
  check<double, 3>({6, 50, 1500}, 2, true);  // in blocks of rows
  check<float, 2>({5, 5003}, 2, true);       // longer than what is done at one go
}

struct Pair {
  double a, b, c;
  bool operator==(const Pair&) const = default;
};

TEST(RowSweep, TakesSeveralArraysAndStructs) {
  const Box<2> mine{{3, 5}, {23, 405}};
  const auto stencil = StencilShape<2>::of({{0, 0}, {1, 0}});
  GridArray<Pair, 2> u(mine, 1), f(mine, 1), v(mine, 1), w(mine, 1);
  for_each_cell(mine.grown({1, 1}, {1, 1}), [&](const Index<2>& i) {
    const auto x = static_cast<double>(i[0] * 1000 + i[1]);
    u.at(i) = {x, -x, 1}, f.at(i) = {2 * x, 3, x};
  });
  RowSweep<Pair, 2> sweep(stencil);
  const std::int64_t s = u.ref().stride[0];
  for (int step = 0; step < kSteps; ++step)
    sweep({mine}, std::array{u.ref(), f.ref()}, std::array{v.ref(), w.ref()},
          [s](const std::array<const Pair*, 2>& in, const std::array<Pair*, 2>& out, std::int64_t n) {
            for (std::int64_t x = 0; x < n; ++x) {
              out[0][x] = {in[0][x + s].a, in[1][x].b, in[0][x].c};
              out[1][x] = {in[1][x].a, in[0][x].b, in[1][x + s].c};
            }
          });
  for_each_cell(mine, [&](const Index<2>& i) {
    const Index<2> below{i[0] + 1, i[1]};
    ASSERT_EQ(v.at(i), (Pair{u.at(below).a, f.at(i).b, u.at(i).c})) << to_string<2>(i);
    ASSERT_EQ(w.at(i), (Pair{f.at(i).a, u.at(i).b, f.at(below).c})) << to_string<2>(i);
  });
  EXPECT_EQ(v.at({2, 5}), Pair{});
  EXPECT_EQ(v.at({3, 405}), Pair{});
}

/// What cannot be copied is not, and a single array among several comes as an array of one.
struct Counting {
  std::array<double, 64>& sums;
  Counting(std::array<double, 64>& s) : sums(s) {}
  Counting(const Counting&) = delete;
  int source() const { return 0; }  // of the user's own meaning
  void operator()(const std::array<const double*, 2>& in, const std::array<double*, 1>& out, std::int64_t n,
                  const Index<2>& i) const {
    for (std::int64_t x = 0; x < n; ++x)
      sums[static_cast<std::size_t>(i[0])] += out[0][x] = in[0][x] + 2 * in[1][x];
  }
};

TEST(RowSweep, TakesAnyFunction) {
  const Box<2> mine{{0, 0}, {20, 37}};
  GridArray<double, 2> u(mine, 1), f(mine, 1), v(mine, 1);
  for_each_cell(mine, [&](const Index<2>& i) { u.at(i) = static_cast<double>(i[0]), f.at(i) = 1; });
  RowSweep<double, 2> sweep(StencilShape<2>::star(0));
  std::array<double, 64> sums{};
  const Counting count(sums);
  for (int step = 0; step < kSteps; ++step) sweep({mine}, std::array{u.ref(), f.ref()}, std::array{v.ref()}, count);
  for (std::size_t row = 0; row < 20; ++row)
    EXPECT_EQ(sums[row], kSteps * 37 * (static_cast<double>(row) + 2)) << "row " << row;
  sweep({mine}, u.ref(), v.ref(), [](const auto* from, auto* to, auto n) {
    for (decltype(n) x = 0; x < n; ++x) to[x] = from[x] + 1;
  });
  for_each_cell(mine, [&](const Index<2>& i) { EXPECT_EQ(v.at(i), static_cast<double>(i[0]) + 1); });
}

TEST(GridArray, BeginsRowsOfOwnedCellsWithCacheLines) {
  for (const std::int64_t width : {0, 1, 3, 9})
    for (const std::int64_t n : {1, 8, 509, 512}) {
      const Box<2> mine{{-2, 7}, {3, 7 + n}};
      GridArray<double, 2> a(mine, width), b(mine, width);
      for (Index<2> i = mine.low; i[0] < mine.high[0]; ++i[0])
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&a.at(i)) % 64, 0U) << n << ", width " << width;
      double last = 1;
      for_each_cell(a.ref().allocated(), [&](const Index<2>& i) { last = a.at(i) == 0 ? a.at(i) = 2, last : 0; });
      EXPECT_EQ(last, 1) << "zeroed, and no cell twice";
      const double* const cells = &a.at(mine.low);
      std::swap(a, b);
      EXPECT_EQ(&b.at(mine.low), cells);
    }
}

TEST(GridArray, RefusesWhatHasNoRoom) {
  EXPECT_THROW((GridArray<double, 2>(Box<2>{{0, 0}, {std::int64_t{1} << 33, std::int64_t{1} << 31}}, 1)),
               std::bad_alloc);
  EXPECT_THROW((GridArray<double, 1>(Box<1>{{0}, {std::int64_t{1} << 61}}, 0)), std::bad_alloc);
  EXPECT_THROW((GridArray<double, 2>(Box<2>{{0, 0}, {8, 8}}, std::int64_t{1} << 62)), std::bad_alloc);
  test::expect_refusal("ghost width -1 is negative", [] { GridArray<double, 2>(Box<2>{{0, 0}, {8, 8}}, -1); });
}

TEST(RowSweep, RefusesArraysThatLackCells) {
  const Box<2> mine{{0, 0}, {8, 16}};
  GridArray<double, 2> u(mine, 1), v(mine, 1), wide(mine, 9);
  RowSweep<double, 2> sweep(StencilShape<2>::star(2));
  const auto row = [](const double*, double*, std::int64_t) { FAIL() << "the loop is called"; };
  test::expect_refusal("that it reads holds the cells from (-1, -1)",
                       [&] { sweep({mine}, u.ref(), v.ref(), row); });
  RowSweep<double, 2> near(StencilShape<2>::star(0));
  test::expect_refusal("give it more ghost", [&] { near({mine.grown({2, 0}, {0, 0})}, u.ref(), v.ref(), row); });
  test::expect_refusal("they must be the same", [&] { near({mine}, wide.ref(), v.ref(), row); });
  ArrayRef<double, 2> other = u.ref();
  std::swap(other.stride[0], other.stride[1]);
  test::expect_refusal("the last one must be 1", [&] { near({mine}, other, other, row); });
  other = u.ref(), other.stride[0] = 3;
  test::expect_refusal("RowSweep, writing: the strides (3, 1) of array 0 let cells overlap",
                       [&] { near({mine}, u.ref(), other, row); });
  other = u.ref(), other.data = nullptr;
  test::expect_refusal("is NULL", [&] { near({mine}, other, u.ref(), row); });
  test::expect_refusal("is NULL", [&] { near({mine}, ArrayRef<double, 2>(), u.ref(), row); });
}

}  // namespace
}  // namespace isohalo
