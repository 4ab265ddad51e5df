/// Distributions and message counts of the binary tree reduction, against the thesis' tables and its definitions.

#include <gtest/gtest.h>

#include <functional>

#include "apps/bench/distributions.hpp"
#include "datatypes/error.hpp"
#include "framework/reduce/array_reducer.hpp"
#include "tests/reduce/program_runner.hpp"

namespace isohalo {
namespace {

int rank_by_search(const RangeStarts& starts, std::int64_t index) {
  int r = 0;
  while (starts[static_cast<std::size_t>(r) + 1] <= index) ++r;
  return r;
}

/// Indices whose parent lies on another rank (equation 3.5), one by one.
std::int64_t count_by_definition(const RangeStarts& starts) {
  std::int64_t count = 0;
  for (std::int64_t i = 1; i < starts.back(); ++i)
    count += rank_by_search(starts, i) != rank_by_search(starts, i & (i - 1));
  return count;
}

TEST(IndexRanges, MessageCountsOfTheThesis) {  // tables 3.1 and 3.2
  EXPECT_EQ(message_count(lower_distribution(504850, 256)), 1640);
  EXPECT_EQ(message_count(upper_distribution(504850, 256)), 1401);
  EXPECT_EQ(message_count(power_of_two_distribution(504850, 256)), 256);
}

TEST(IndexRanges, MessageCountExtremesOfTheThesis) {  // section 2.1: N = 2^i p and N = 2^i p + 1
  for (const int p : {2, 4, 64, 256})
    for (int i = 1; i < 9; ++i) {
      EXPECT_EQ(message_count(lower_distribution((std::int64_t{1} << i) * p, p)), p - 1);
      EXPECT_EQ(message_count(lower_distribution((std::int64_t{1} << i) * p + 1, p)), (p - 1) * (i + 1));
    }
}

TEST(IndexRanges, OptimisedStartsHaveFewBitsAndFewMessages) {
  const RangeStarts even = upper_distribution(504850, 256);
  std::int64_t before = message_count(even);
  for (const double alpha : {0.0, 0.05, 0.2, 0.5, 1.0}) {
    const RangeStarts starts = optimised_distribution(504850, 256, alpha);
    for (std::size_t r = 0; r < starts.size(); ++r) {
      EXPECT_LE(static_cast<double>(even[r] - starts[r]), alpha * 504850 / 256);
      EXPECT_LE(starts[r], even[r]);
    }
    const std::int64_t now = message_count(starts);
    EXPECT_LE(now, before);
    before = now;
  }
  EXPECT_EQ(optimised_distribution(504850, 256, 0), even);
  EXPECT_EQ(optimised_distribution(16, 2, 0.5), (RangeStarts{0, 8, 16}));
  EXPECT_EQ(optimised_distribution(22, 2, 0.5), (RangeStarts{0, 8, 22}));  // 11 -> 10 -> 8
}

std::vector<RangeStarts> distributions(std::int64_t n, int p) {
  return {lower_distribution(n, p), upper_distribution(n, p), power_of_two_distribution(n, p),
          optimised_distribution(n, p, 0.3)};
}

TEST(IndexRanges, AllNumbersAreDealtOut) {
  for (const std::int64_t n : {1, 2, 7, 64, 100, 257})
    for (int p = 1; p <= 40; ++p)
      for (const RangeStarts& starts : distributions(n, p)) {
        ASSERT_EQ(starts.size(), static_cast<std::size_t>(p) + 1);
        ASSERT_EQ(starts.front(), 0);
        ASSERT_EQ(starts.back(), n);
        ASSERT_TRUE(std::is_sorted(starts.begin(), starts.end()));
        ASSERT_EQ(message_count(starts), count_by_definition(starts)) << n << " on " << p;
      }
}

TEST(IndexRanges, RefusesByName) {
  EXPECT_THROW(array_layout({0, 0, 0}), UsageError);
}

/// The thesis' reduce(x, y) of equation 2.1.
std::uint64_t reduce(const std::vector<std::uint64_t>& v, std::size_t x, int y,
                     const std::function<std::uint64_t(std::uint64_t, std::uint64_t)>& op) {
  if (y == 0) return v[x];
  const std::size_t half = std::size_t{1} << (y - 1);
  if (x + half >= v.size()) return reduce(v, x, y - 1, op);
  return op(reduce(v, x, y - 1, op), reduce(v, x + half, y - 1, op));
}

/// Messages of all ranks by the two rules of section 3.1.1, number by number: an outbound subtree root joins the
/// one before unless it goes elsewhere, is larger than `buffer.leaves` or finds the buffer full.
std::int64_t messages_by_definition(const RangeStarts& starts, const MessageBuffer& buffer) {
  const std::int64_t n = starts.back();
  const auto owner = [&](std::int64_t x) {
    return std::upper_bound(starts.begin(), starts.end(), x) - starts.begin() - 1;
  };
  std::int64_t messages = 0;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    std::ptrdiff_t target = -1;
    int held = 0;
    for (std::int64_t x = std::max<std::int64_t>(1, starts[r]); x < starts[r + 1]; ++x) {
      const std::int64_t lowest = x & -x, parent = x - lowest;
      if (parent >= starts[r]) continue;  // its subtree hangs in this rank's own
      const std::int64_t leaves = std::min(lowest, n - x);
      if (owner(parent) != target || leaves > buffer.leaves || held == buffer.values) ++messages, held = 0;
      target = owner(parent), ++held;
    }
  }
  return messages;
}

/// The thesis' figure 3.3: 6 numbers on 2 ranks; (3, 0) and (4, 1) go together.
TEST(IndexRanges, MessagesOfTheWorkedExample) {
  const RangeStarts starts{0, 3, 6};
  EXPECT_EQ(messages_by_definition(starts, {1, 64}), 2);
  EXPECT_EQ(messages_by_definition(starts, {}), 1);
  EXPECT_EQ(messages_by_definition(starts, {4, 1}), 2);  // the second is of two numbers
}

TEST(IndexRanges, ProgramsSendAsManyMessagesAsTheFlushRulesSay) {
  const auto op = [](std::uint64_t a, std::uint64_t b) { return (a * 31 + b) ^ (b >> 3); };
  for (const std::int64_t n : {1, 5, 61, 64, 65, 300, 1000})
    for (const int p : {1, 2, 3, 4, 7, 16, 31})
      for (const RangeStarts& starts : distributions(n, p)) {
        const ArrayLayout layout = array_layout(starts);
        const Tiling<1> tiling(Decomposition<1>({n}, {layout.cuts}), {1});
        const ReductionPlan<1> plan(tiling, layout.ranks);
        std::vector<std::int64_t> leaves;
        for (std::size_t k = 0; k < plan.nodes().size(); ++k)
          leaves.push_back(plan.tiles(static_cast<std::int32_t>(k)).cells());
        std::vector<std::uint64_t> v;
        for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<std::uint64_t>(i * i + 7));
        for (const MessageBuffer& buffer : {MessageBuffer{1, 64}, MessageBuffer{}, MessageBuffer{4, 2}}) {
          std::vector<ReduceProgram> programs;
          test::Holdings<std::uint64_t> known(static_cast<std::size_t>(p));
          std::int64_t messages = 0;
          for (int r = 0; r < p; ++r) {
            programs.push_back(binary_tree_program(plan.nodes(), leaves, r, p, buffer));
            messages += test::messages_sent(programs.back());
            for (std::int32_t leaf : plan.leaves_of(r)) {
              const Box<1>& b = plan.tiles(leaf);
              int height = 0;
              while ((std::int64_t{1} << height) < b.extent(0)) ++height;
              const std::vector<std::uint64_t> part(v.begin() + b.low[0], v.begin() + b.high[0]);
              known[static_cast<std::size_t>(r)][leaf] = reduce(part, 0, height, op);
            }
          }
          ASSERT_EQ(messages, messages_by_definition(starts, buffer)) << n << " on " << p << ", " << buffer.values;
          if (buffer.values == 1) {
            ASSERT_EQ(messages, message_count(starts)) << n << " on " << p;
          }
          test::run_programs(plan.nodes(), programs, known, op);
          ASSERT_FALSE(HasFatalFailure());
          int height = 0;
          while ((std::int64_t{1} << height) < n) ++height;
          const int root = layout.ranks.front();
          ASSERT_EQ(known[static_cast<std::size_t>(root)].at(0), reduce(v, 0, height, op)) << n << " on " << p;
        }
      }
}

}  // namespace
}  // namespace isohalo
