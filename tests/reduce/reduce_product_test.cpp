/// The same bits for p = 1 .. 64 ranks x all process grids x tolerances x methods x schedules of all kinds; and
/// every schedule that the enumeration finds for p = 1 .. 64, with the process grids in turn. All in process: the
/// ranks of the job share the cases.

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

#include "datatypes/superaccumulator.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/program_cases.hpp"

namespace isohalo {
namespace {

using test::Case;
using test::expect_root;
using test::Hash;

constexpr int kMostRanks = 64;

/// Deals cases to the ranks of the job; only every n-th with ISOHALO_TEST_EVERY=n, which should be odd.
class Share {
 public:
  Share() {
    if (const char* every = std::getenv("ISOHALO_TEST_EVERY")) every_ = std::stoul(every);
  }

  bool is_mine() {
    const std::size_t i = next_++, ranks = static_cast<std::size_t>(test::ranks());
    return i % every_ == 0 && i / every_ % ranks == static_cast<std::size_t>(test::rank());
  }

 private:
  std::size_t every_ = 1;
  std::size_t next_ = 0;
};

template <int D>
std::vector<std::uint64_t> numbered_cells(const Index<D>& shape) {
  std::vector<std::uint64_t> cells;
  for (std::int64_t l = 0; l < box_of_shape<D>(shape).cells(); ++l)
    cells.push_back(mix64(static_cast<std::uint64_t>(l)));
  return cells;
}

template <int D>
void check(const Index<D>& shape, const Index<D>& tile) {
  const auto cells = numbered_cells<D>(shape);
  const std::uint64_t expected = test::reduce_by_definition<std::uint64_t, D>(shape, tile, cells, Hash());
  Share share;
  for (int p = 1; p <= kMostRanks; ++p) {
    const auto schedules = test::schedules_to_try(p);
    for (const auto& grid : all_process_grids<D>(shape, p))
      for (const double tolerance : {0.0, 0.3}) {
        if (!share.is_mine()) continue;
        const Case<D> c(Decomposition<D>(shape, grid, tolerance), tile, cells);
        const std::string what = "p=" + std::to_string(p) + " tolerance " + std::to_string(tolerance) + " ";
        for (const int root : {-1, p / 2})
          expect_root(c, {ReductionMethod::binary_tree, "auto", false, true, root}, expected, what + "binary tree");
        for (const auto& s : schedules)
          for (const bool resolve : {false, true})
            expect_root(c, {ReductionMethod::tree, s, resolve}, expected, what + s + (resolve ? " resolved" : ""));
        if (testing::Test::HasFatalFailure()) return;
      }
  }
}

TEST(ReduceProduct, In1D) {
  check<1>({300}, {4});
}
TEST(ReduceProduct, In2D) {
  check<2>({61, 35}, {4, 8});
}
TEST(ReduceProduct, In3D) {
  check<3>({9, 11, 17}, {2, 2, 4});
}
TEST(ReduceProduct, In4D) {
  check<4>({5, 4, 6, 7}, {2, 1, 2, 4});
}

/// Exact sums: the words of 1 .. 64 ranks, empty ones included, added in rank order, backwards and by pairs.
TEST(ReduceProduct, ExactSums) {
  std::vector<double> numbers;
  for (std::uint64_t l = 0; l < 700; ++l) {  // cancellation over the whole range of exponents
    const std::uint64_t z = mix64(l / 2);
    const double x = std::ldexp(1 + static_cast<double>(z >> 12) * 0x1p-52, static_cast<int>(z % 2000) - 1000);
    numbers.push_back(l % 2 && l % 7 ? -x : x);
  }
  Superaccumulator all;
  for (const double x : numbers) all.add(x);
  const auto expected = std::bit_cast<std::uint64_t>(all.value());
  for (std::size_t p = 1; p <= kMostRanks; ++p)
    for (int cut = 0; cut < 3; ++cut) {
      std::vector<Superaccumulator> ranks(p);
      for (std::size_t l = 0; l < numbers.size(); ++l) {
        const std::size_t even = l * p / numbers.size(), owner = cut == 0   ? even
                                                                 : cut == 1 ? even * even / p
                                                                            : l % p;
        ranks[owner].add(numbers[l]);
      }
      for (auto& r : ranks) r.settle();
      const auto add = [](Superaccumulator& to, Superaccumulator& from) {
        for (std::size_t w = 0; w < to.words().size(); ++w) to.words()[w] += from.words()[w];
      };
      auto forward = ranks, backward = ranks, pairs = ranks;
      for (std::size_t r = 1; r < p; ++r) add(forward[0], forward[r]);
      for (std::size_t r = p - 1; r > 0; --r) add(backward[r - 1], backward[r]);
      for (std::size_t step = 1; step < p; step *= 2)
        for (std::size_t r = 0; r + step < p; r += 2 * step) add(pairs[r], pairs[r + step]);
      for (auto* sums : {&forward, &backward, &pairs})
        ASSERT_EQ(std::bit_cast<std::uint64_t>((*sums)[0].value()), expected) << p << " ranks, cut " << cut;
    }
}

TEST(ReduceProduct, EverySchedule) {
  const Index<2> shape{13, 67}, tile{4, 8};
  const auto cells = numbered_cells<2>(shape);
  const std::uint64_t expected = test::reduce_by_definition<std::uint64_t, 2>(shape, tile, cells, Hash());
  Share share;
  for (int p = 1; p <= kMostRanks; ++p) {
    std::vector<Case<2>> cases;
    for (const auto& grid : all_process_grids<2>(shape, p))
      for (const double tolerance : {0.0, 0.3})
        cases.emplace_back(Decomposition<2>(shape, grid, tolerance), tile, cells);
    std::size_t turn = 0;
    for_each_schedule(p, {}, [&](const std::vector<Stage>& stages) {
      if (share.is_mine()) {
        const std::string s = to_text(stages);
        expect_root(cases[turn % cases.size()], {ReductionMethod::tree, s, turn / cases.size() % 2 == 1}, expected,
                    "p=" + std::to_string(p) + " " + s);
      }
      ++turn;
      return !testing::Test::HasFatalFailure();
    });
    EXPECT_GE(turn, 1u);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace isohalo
