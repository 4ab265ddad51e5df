// Rows of cells against loops over single ones.

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "framework/neighborhood/offsets.hpp"
#include "stencils/life_row.hpp"
#include "stencils/weighted_row.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

TEST(WeightedRow, AnyNumberOfTermsInTheirOrder) {
  test::Random random(3);
  std::vector<double> u(4000), out(4000);
  for (auto& x : u) x = random.real(-1, 1);
  for (std::size_t test = 2; test <= 81; ++test) {
    const std::size_t terms = test / 2;
    Offsets<1> offsets;
    std::vector<double> weights;
    for (std::size_t k = 0; k < terms; ++k)
      offsets.push_back({random.in(-50, 50)}), weights.push_back(random.real(-1, 1));
    const WeightedRow<double, 1> row(offsets, weights, {1}, test % 2 == 0);
    for (std::int64_t n : {1, 7, 1024, 3000}) {
      row.run_row(u.data() + 500, out.data(), n);
      for (std::int64_t x = 0; x < n; ++x) {
        double acc = weights[0] * u[static_cast<std::size_t>(500 + x + offsets[0][0])];
        for (std::size_t k = 1; k < terms; ++k)
          acc = acc + weights[k] * u[static_cast<std::size_t>(500 + x + offsets[k][0])];
        ASSERT_EQ(out[static_cast<std::size_t>(x)], acc) << terms << " terms, cell " << x;
      }
    }
  }
}

/// Terms in runs along the row; the array ends where the last term does, and sums are zeros of either sign.
template <class T>
void check_runs(int longest, std::int64_t n, bool by_runs, test::Random& random) {
  Offsets<2> offsets;
  std::vector<double> weights;
  for (int run = 0; run < 3; ++run) {
    const std::int64_t terms = random.in(1, longest);
    for (std::int64_t k = 0; k < terms; ++k)
      offsets.push_back({run, k}), weights.push_back(static_cast<double>(random.in(-2, 2)));
  }
  const std::int64_t stride = n + longest - 1;
  std::vector<T> u(static_cast<std::size_t>(3 * stride)), out(static_cast<std::size_t>(n));
  for (auto& x : u) x = static_cast<T>(random.in(0, 2) == 0 ? random.real(-1, 1) : 0);
  const auto at = [&](std::int64_t x, const Index<2>& o) {
    return u[static_cast<std::size_t>(x + o[0] * stride + o[1])];
  };
  WeightedRow<T, 2>(offsets, weights, {stride, 1}, by_runs).run_row(u.data(), out.data(), n);
  for (std::int64_t x = 0; x < n; ++x) {
    T acc = static_cast<T>(weights[0]) * at(x, offsets[0]);
    for (std::size_t k = 1; k < offsets.size(); ++k) acc = acc + static_cast<T>(weights[k]) * at(x, offsets[k]);
    ASSERT_EQ(std::memcmp(&out[static_cast<std::size_t>(x)], &acc, sizeof acc), 0)
        << "runs of up to " << longest << " terms, cell " << x << " of " << n;
  }
}

TEST(WeightedRow, RunsOfTermsInRowsOfAnyWidth) {
  test::Random random(5);
  for (int longest = 1; longest <= 20; ++longest)
    for (std::int64_t n = 1; n <= 200; n = n < 40 ? n + 1 : n + 13) {
      for (const bool by_runs : {false, true}) {
        check_runs<double>(longest, n, by_runs, random);
        check_runs<float>(longest, n, by_runs, random);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
}

/// `count` rows of n cells, by lists of runs of which some lie above each other, before the cell and behind it; the
/// array ends where the last term of the last row does, what no row has is left alone, and sums are zeros of either
/// sign.
template <class T, int Bytes>
void check_rows(std::int64_t n, std::int64_t count, test::Random& random) {
  constexpr std::int64_t longest = 6, tallest = 5, planes = 3;
  const bool zero = count % 3 == 0;  // then all sums are -0
  Offsets<3> offsets;
  std::vector<double> weights;
  const bool box = random.in(0, 3) == 0;  // of nine points, whose weights are held
  for (std::int64_t plane = box ? planes - 1 : 0; plane < planes; ++plane) {
    const std::int64_t height = box ? 3 : random.in(1, tallest), terms = box ? 3 : random.in(1, longest),
                       y = tallest - height;
    for (std::int64_t k = 0; k < height * terms; ++k) {
      offsets.push_back({plane - 1, y + k / terms - 2, k % terms - 3});
      weights.push_back(static_cast<double>(random.in(-2, zero ? -1 : 2)));
    }
    if (!box && random.in(0, 1))
      offsets.push_back({plane - 1, random.in(-2, tallest - 3), -3}), weights.push_back(zero ? -1 : 0.5);
  }
  const std::int64_t row = n + longest - 1, of_plane = (count + tallest - 1) * row;
  std::vector<T> u(static_cast<std::size_t>(planes * of_plane)), out(static_cast<std::size_t>(count * row), T(7));
  for (auto& x : u) x = static_cast<T>(!zero && random.in(0, 2) == 0 ? random.real(-1, 1) : 0);
  const T* const in = u.data();
  T* const to = out.data();
  const std::int64_t first = of_plane + 2 * row + 3;
  std::optional<bool> by_runs;  // what is the fastest is found out
  if (count % 4 > 0) by_runs = count % 2 == 0;
  WeightedRow<T, 3, Bytes>(offsets, weights, {of_plane, row, 1}, by_runs)
      .run(&in, first, &to, 0, {n, count, row, n % 2 == 0}, {});
  for (std::int64_t k = 0; k < count * row; ++k) {
    T acc = 7;
    for (std::size_t t = 0; t < offsets.size() && k % row < n; ++t) {
      const Index<3>& o = offsets[t];
      const T term =
          static_cast<T>(weights[t]) * u[static_cast<std::size_t>(first + k + o[0] * of_plane + o[1] * row + o[2])];
      acc = t == 0 ? term : acc + term;
    }
    ASSERT_EQ(std::memcmp(&out[static_cast<std::size_t>(k)], &acc, sizeof acc), 0)
        << offsets.size() << " terms, cell " << k % row << " of " << n << ", row " << k / row << " of " << count;
  }
}

TEST(WeightedRow, SeveralRowsAtOnce) {
  test::Random random(7);
  for (std::int64_t n = 1; n <= 100; n = n < 40 ? n + 1 : n + 7)
    for (std::int64_t count = 1; count <= 13; ++count) {
      check_rows<double, detail::kVectorBytes>(n, count, random);
      check_rows<float, detail::kVectorBytes>(n, count, random);
      check_rows<double, 16>(n, count, random);
      check_rows<float, 16>(n, count, random);
      if (testing::Test::HasFatalFailure()) return;
    }
}

/// `count` rows of n cells by this LifeRow, of any rule, against a count of the neighbors.
template <class Row>
void check_life(unsigned born, unsigned survive, std::int64_t n, std::int64_t count, test::Random& random) {
  const std::int64_t stride = n + 2;
  std::vector<std::uint8_t> u(static_cast<std::size_t>((count + 2) * stride)), out(u.size(), 7);
  for (auto& x : u) x = static_cast<std::uint8_t>(random.in(0, 1));
  const std::uint8_t* const in = u.data();
  std::uint8_t* const to = out.data();
  Row(born, survive, {stride, 1}).run(&in, stride + 1, &to, stride + 1, {n, count, stride}, {});
  for (std::int64_t y = 0; y < count + 2; ++y)
    for (std::int64_t x = 0; x < stride; ++x) {
      const auto at = [&](std::int64_t j, std::int64_t i) { return u[static_cast<std::size_t>(j * stride + i)]; };
      unsigned next = 7;  // what no row has is left alone
      if (y > 0 && y <= count && x > 0 && x <= n) {
        unsigned living = 0;
        for (std::int64_t k = 0; k < 9; ++k)
          if (k != 4) living += at(y + k / 3 - 1, x + k % 3 - 1);
        next = (at(y, x) ? survive : born) >> living & 1u;
      }
      ASSERT_EQ(out[static_cast<std::size_t>(y * stride + x)], next)
          << "born " << born << ", survive " << survive << ", row " << y << " of " << count << ", cell " << x
          << " of " << n;
    }
}

TEST(LifeRow, AnyRuleInRowsOfAnyWidthAndNumber) {
  test::Random random(6);
  for (int k = 0; k < 600; ++k) {
    const auto rule = [&] { return static_cast<unsigned>(k == 0 ? 0 : k == 1 ? 511 : random.in(0, 511)); };
    const unsigned born = rule(), survive = rule();
    check_life<LifeRow<>>(born, survive, k % 200 + 1, k % 11 + 1, random);
    check_life<LifeRow<16>>(born, survive, k % 50 + 1, k % 7 + 1, random);
    check_life<LifeRow<16, false>>(born, survive, k % 53 + 1, k % 7 + 1, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace isohalo
