/// Arrays of a user's own over MPI: any counts, empty ranks, methods, values and operations.

#include "framework/reduce/array_reducer.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "apps/bench/distributions.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/tree_by_definition.hpp"

namespace isohalo {
namespace {

/// A sum, a minimum and an order-sensitive hash at once.
struct Several {
  double sum, least;
  std::uint64_t hash;
  bool operator==(const Several&) const = default;
};
struct SeveralOp {
  Several operator()(const Several& a, const Several& b) const {
    return {a.sum + b.sum, Min()(a.least, b.least), (a.hash * 31 + b.hash) ^ (b.hash >> 7)};
  }
};

double hard_value(test::Random& random) {  // cancellation over 30 orders of magnitude
  return std::ldexp(random.real(-1, 1), static_cast<int>(random.in(-50, 50)));
}

/// Ways to deal n numbers out to p ranks: even, all on one, empty ranks in between, at random.
std::vector<std::vector<std::int64_t>> counts_to_try(std::int64_t n, int p) {
  std::vector<std::vector<std::int64_t>> all;
  const auto add = [&](const RangeStarts& s) {
    std::vector<std::int64_t> counts;
    for (std::size_t r = 0; r + 1 < s.size(); ++r) counts.push_back(s[r + 1] - s[r]);
    all.push_back(counts);
  };
  add(lower_distribution(n, p)), add(power_of_two_distribution(n, p)), add(optimised_distribution(n, p, 0.3));
  std::vector<std::int64_t> last(static_cast<std::size_t>(p)), odd(last);
  last.back() = n;
  odd[static_cast<std::size_t>(p / 2)] = n / 3, odd.front() += n - n / 3;
  all.push_back(last), all.push_back(odd);
  test::Random random(static_cast<std::uint64_t>(n * 64 + p));
  for (int k = 0; k < 3; ++k) {
    RangeStarts s{0};
    for (int r = 1; r < p; ++r) s.push_back(random.in(0, n));
    s.push_back(n);
    std::sort(s.begin(), s.end());
    add(s);
  }
  return all;
}

TEST(ArrayReducer, AnyCountsAndMethods) {
  for (const std::int64_t n : {1, 5, 255, 1000})
    for (const std::int64_t tile : {1, 8, 256}) {
      test::Random random(static_cast<std::uint64_t>(n));
      std::vector<Several> all;
      for (std::int64_t i = 0; i < n; ++i) {
        const double v = hard_value(random);
        all.push_back({v, v, random.next()});
      }
      const Several expected = test::reduce_by_definition<Several, 1>({n}, {tile}, all, SeveralOp());
      for (const auto& counts : counts_to_try(n, test::ranks())) {
        const auto me = static_cast<std::size_t>(test::rank());
        ArrayReducer<Several, SeveralOp> reducer(MPI_COMM_WORLD, counts[me], {}, {}, tile);
        const Several* const mine = all.data() + reducer.starts()[me];
        for (const ReductionMethod method : {ReductionMethod::tree, ReductionMethod::binary_tree})
          for (const int root : {-1, test::ranks() / 2}) {
            reducer.reduce_by({method, "auto", false, true, root});
            for (int again = 0; again < 2; ++again) {
              const Several got = reducer.reduce(mine);
              EXPECT_TRUE((root >= 0 && root != test::rank()) || got == expected)
                  << n << " numbers, tile " << tile << " " << to_text(method) << " root " << root;
              std::vector<int> asked(static_cast<std::size_t>(counts[me]));
              const Several by_function = reducer.reduce([&](std::int64_t i) {
                ++asked[static_cast<std::size_t>(i)];
                return mine[i];
              });
              EXPECT_TRUE((root >= 0 && root != test::rank()) || by_function == expected);
              EXPECT_EQ(asked, std::vector<int>(asked.size(), 1));
            }
          }
      }
    }
}

TEST(ArrayReducer, NonBlockingAndManyAtOnce) {
  const std::int64_t mine = 100 + test::rank();
  ArrayReducer<std::int64_t> a(MPI_COMM_WORLD, mine), b(MPI_COMM_WORLD, mine);
  std::int64_t n = 0;
  for (int r = 0; r < test::ranks(); ++r) n += 100 + r;
  for (int again = 0; again < 3; ++again) {
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(mine), again), twos(ones.size(), 2 * again);
    a.start(ones.data());
    b.start(twos.data());
    while (!b.test()) a.test();
    EXPECT_EQ(b.wait(), 2 * n * again);
    EXPECT_EQ(a.wait(), n * again);
  }
}

TEST(ArrayReducer, ExactSumsAndSpecialValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const std::int64_t mine = test::rank() % 2 ? 0 : 3;
  ArrayReducer<double> tree(MPI_COMM_WORLD, mine),
      exact(MPI_COMM_WORLD, mine, {}, {ReductionMethod::exact_over_tiles});
  const auto first = [&](double a, double b, double c) {  // rank 0 holds these, the others minus zeros
    return test::rank() == 0 ? std::vector<double>{a, b, c} : std::vector<double>{-0.0, -0.0, -0.0};
  };
  EXPECT_TRUE(std::signbit(tree.reduce(first(-0.0, -0.0, -0.0).data())));
  EXPECT_FALSE(std::signbit(exact.reduce(first(-0.0, -0.0, -0.0).data())));
  EXPECT_EQ(tree.reduce(first(5e-324, 5e-324, 0).data()), 1e-323);
  EXPECT_TRUE(std::isnan(tree.reduce(first(nan, 1, 2).data())));
  EXPECT_TRUE(std::isnan(exact.reduce(first(infinity, -infinity, 2).data())));
  EXPECT_EQ(exact.reduce(first(infinity, 1, 2).data()), infinity);
  EXPECT_EQ(tree.reduce(first(infinity, 1, 2).data()), infinity);
  EXPECT_EQ(tree.reduce(first(1e308, 1e308, 2).data()), infinity);
  ArrayReducer<double> each(MPI_COMM_WORLD, mine, {}, {ReductionMethod::exact_over_terms});
  EXPECT_EQ(each.reduce(first(1e308, 1e308, -1e308).data()), 1e308);
  EXPECT_EQ(each.reduce(first(1e16, 1, -1e16).data()), 1.0);
  each.reduce_by({ReductionMethod::exact_over_terms, recursive_doubling(test::ranks()).text()});
  EXPECT_EQ(each.reduce(first(1e16, 1, -1e16).data()), 1.0);
}

/// A dot product without a temporary has the bits of one with it; several at once.
TEST(ArrayReducer, DotProducts) {
  const std::int64_t mine = 700 + 31 * test::rank();
  test::Random random(static_cast<std::uint64_t>(test::rank()) + 5);
  std::vector<double> x, y, products;
  std::vector<Several> triples;
  for (std::int64_t i = 0; i < mine; ++i) {
    x.push_back(hard_value(random)), y.push_back(hard_value(random));
    products.push_back(x.back() * y.back());
    triples.push_back({products.back(), y.back(), static_cast<std::uint64_t>(i)});
  }
  const auto product = [&](std::int64_t i) {
    return x[static_cast<std::size_t>(i)] * y[static_cast<std::size_t>(i)];
  };
  ArrayReducer<double> sum(MPI_COMM_WORLD, mine);
  ArrayReducer<Several, SeveralOp> several(MPI_COMM_WORLD, mine);
  for (const ReductionMethod method :
       {ReductionMethod::tree, ReductionMethod::exact_over_tiles, ReductionMethod::exact_over_terms}) {
    sum.reduce_by({method});
    const double with_array = sum.reduce(products.data());
    EXPECT_EQ(std::bit_cast<std::uint64_t>(sum.reduce(product)), std::bit_cast<std::uint64_t>(with_array));
    sum.start(product);
    several.start([&](std::int64_t i) {
      return Several{product(i), y[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(i)};
    });
    const Several of_function = several.wait();
    EXPECT_EQ(sum.wait(), with_array);
    EXPECT_TRUE(of_function == several.reduce(triples.data()));
  }
}

__extension__ typedef __int128 Wide;

/// Terms that nearly cancel, their sum known as an integer: rounded once over terms, and not over tiles.
TEST(ArrayReducer, ExactOverTermsIsTheSumRoundedOnce) {
  test::Random random(11);
  const std::int64_t n = 20000;
  std::vector<double> all;
  Wide sum = 0;
  const auto add = [&](std::int64_t mantissa, int exponent) {
    all.push_back(std::ldexp(static_cast<double>(mantissa), exponent));
    sum += static_cast<Wide>(mantissa) << exponent;
  };
  for (std::int64_t i = 0; i < n / 2; ++i) {
    const std::int64_t mantissa = random.in(-(std::int64_t{1} << 52), std::int64_t{1} << 52);
    const int exponent = static_cast<int>(random.in(0, 55));
    add(mantissa, exponent);
    add(i % 7 ? -mantissa : 1 - mantissa, exponent / 3 * 3 == exponent ? 0 : exponent);
  }
  const auto expected = static_cast<double>(sum);  // rounds to nearest even
  for (const auto& counts : counts_to_try(n, test::ranks())) {
    const auto me = static_cast<std::size_t>(test::rank());
    ArrayReducer<double> reducer(MPI_COMM_WORLD, counts[me], {}, {ReductionMethod::exact_over_terms});
    const double* const mine = all.data() + reducer.starts()[me];
    const auto term = [mine](std::int64_t i) { return mine[i]; };
    EXPECT_EQ(reducer.reduce(mine), expected);
    EXPECT_EQ(reducer.reduce(term), expected);
    reducer.reduce_by({ReductionMethod::exact_over_tiles});
    EXPECT_NE(reducer.reduce(mine), expected);  // what it says of itself: tile values are rounded
    EXPECT_EQ(reducer.reduce(term), reducer.reduce(mine));
    reducer.reduce_by({ReductionMethod::exact_over_terms, "auto", false, true, test::ranks() - 1});
    reducer.start(mine);
    const double to_one = reducer.wait();
    EXPECT_TRUE(test::rank() != test::ranks() - 1 || to_one == expected);
  }
}

TEST(ArrayReducer, RefusesByNameOnAllRanks) {
  const bool first = test::rank() == 0;
  test::expect_refusal("no numbers", [] { ArrayReducer<double>(MPI_COMM_WORLD, 0); });
  test::expect_refusal("holds -1 numbers", [&] { ArrayReducer<double>(MPI_COMM_WORLD, first ? -1 : 4); });
  test::expect_refusal("and 2^53 together",
                       [&] { ArrayReducer<double>(MPI_COMM_WORLD, (std::int64_t{1} << 53) + first); });
  test::expect_refusal("no power of two", [&] { ArrayReducer<double>(MPI_COMM_WORLD, 4, {}, {}, 3); });
  test::expect_refusal("exact is for sums of float64",
                       [&] { ArrayReducer<float>(MPI_COMM_WORLD, 4, {}, {ReductionMethod::exact_over_tiles}); });
  test::expect_refusal("exact is for sums of float64", [&] {
    ArrayReducer<double, Max>(MPI_COMM_WORLD, 4, {}, {ReductionMethod::exact_over_tiles});
  });
  test::expect_refusal("exact_over_terms is for sums of float64", [&] {
    ArrayReducer<std::int64_t>(MPI_COMM_WORLD, 4, {}, {ReductionMethod::exact_over_terms});
  });
  ArrayReducer<double> good(MPI_COMM_WORLD, 4);
  test::expect_refusal("give a rank that there is", [&] {
    good.reduce_by({ReductionMethod::tree, "auto", false, true, 99});
  });
  test::expect_refusal("binary_tree has no schedule", [&] {
    good.reduce_by({ReductionMethod::binary_tree, "a2"});
  });
  test::expect_refusal("nonsense", [&] { good.reduce_by({ReductionMethod::tree, "nonsense"}); });
  test::expect_refusal("a77", [&] { good.reduce_by({ReductionMethod::tree, "a77"}); });
  ArrayReducer<double> sum(MPI_COMM_WORLD, 4);
  test::expect_refusal("may bring a contribution twice", [&] {
    sum.reduce_by({ReductionMethod::exact_over_tiles, "d2"});
  });
  if (test::ranks() > 1) {
    test::expect_refusal("differs between ranks",
                         [&] { good.reduce_by({first ? ReductionMethod::tree : ReductionMethod::binary_tree}); });
    test::expect_refusal("differs between ranks",
                         [&] { ArrayReducer<double>(MPI_COMM_WORLD, 4, {}, {}, first ? 8 : 16); });
    test::expect_refusal("make different things: rank 0 ArrayReducer, rank 1 CartesianDomain", [&] {
      if (first)
        ArrayReducer<double>(MPI_COMM_WORLD, 4);
      else
        CartesianDomain<2>(MPI_COMM_WORLD, {40, 50});
    });
    test::expect_refusal("\"operation\" differs between ranks: rank 0 has \"isohalo::Sum\"", [&] {
      if (first)
        ArrayReducer<double, Sum>(MPI_COMM_WORLD, 4);
      else
        ArrayReducer<double, Max>(MPI_COMM_WORLD, 4);
    });
    test::expect_refusal("\"type of a value\" differs between ranks: rank 0 has \"double\"", [&] {
      if (first)
        ArrayReducer<double>(MPI_COMM_WORLD, 4);
      else
        ArrayReducer<std::int64_t>(MPI_COMM_WORLD, 4);
    });
    // On one rank alone; what is made afterwards has the same tags on all of them.
    test::expect_refusal("no power of two",
                         [&] { ArrayReducer<double>(MPI_COMM_WORLD, 4, {}, {}, first ? 0 : 256); });
    ArrayReducer<std::int64_t> ones(MPI_COMM_WORLD, 3);
    EXPECT_EQ(ones.reduce([](std::int64_t) { return 1; }), 3 * test::ranks());
    test::expect_refusal("rank 1: ", [&] {  // one rank alone
      good.reduce_by({ReductionMethod::tree, "auto", false, true, test::rank() == 1 ? -7 : -1});
    });
  }
  good.reduce_by({});
  test::expect_refusal("the numbers are NULL", [&] { good.reduce(nullptr); });
  const double numbers[4] = {1, 2, 3, 4};
  EXPECT_EQ(good.reduce(numbers), 10.0 * test::ranks());
}

}  // namespace
}  // namespace isohalo
