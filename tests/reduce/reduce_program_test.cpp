/// Programs of reductions in process: every schedule of a few ranks, results on one rank, refusals.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "datatypes/error.hpp"
#include "datatypes/mix.hpp"
#include "framework/reduce/partial_sets.hpp"
#include "framework/reduce/reduction_plan.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/program_cases.hpp"

namespace isohalo {
namespace {

using test::Case;
using test::expect_root;
using test::Hash;
using test::schedules_to_try;

TEST(ReduceProgram, EveryScheduleOfAFewRanks) {
  const Index<2> shape{23, 30}, tile{4, 4};
  std::vector<std::uint64_t> cells;
  for (std::int64_t l = 0; l < 23 * 30; ++l) cells.push_back(mix64(static_cast<std::uint64_t>(l + 5)));
  const std::uint64_t expected = test::reduce_by_definition<std::uint64_t, 2>(shape, tile, cells, Hash());
  int schedules = 0;
  for (const int p : {2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13}) {
    const Case<2> c(Decomposition<2>(shape, choose_process_grid<2>(shape, p), 0.1), tile, cells);
    for_each_schedule(p, {}, [&](const std::vector<Stage>& stages) {
      expect_root(c, {ReductionMethod::tree, to_text(stages)}, expected, to_text(stages));
      return ++schedules && !HasFatalFailure();
    });
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(schedules, 100);
}

std::int64_t total_messages(const std::vector<ReduceProgram>& programs) {
  std::int64_t count = 0;
  for (const ReduceProgram& p : programs) count += test::messages_sent(p);
  return count;
}

/// Every value that a rank receives or forms goes into another or is sent on; only the root's stays.
void expect_nothing_idle(const std::vector<FrontierNode>& nodes, const std::vector<ReduceProgram>& programs,
                         int root, const std::string& what) {
  for (std::size_t r = 0; r < programs.size(); ++r) {
    std::set<std::int32_t> idle;
    for (const ProgramStage& stage : programs[r]) {
      for (const NodeMessage& m : stage.receive)
        for (const std::int32_t n : m.nodes) EXPECT_TRUE(idle.insert(n).second) << what << " arrives twice";
      for (const std::int32_t n : stage.combine) {
        idle.erase(nodes[static_cast<std::size_t>(n)].left);
        idle.erase(nodes[static_cast<std::size_t>(n)].right);
        EXPECT_TRUE(idle.insert(n).second) << what << " is formed twice";
      }
      for (const NodeMessage& m : stage.send) {
        EXPECT_FALSE(m.nodes.empty()) << what;
        for (const std::int32_t n : m.nodes) idle.erase(n);
      }
    }
    const bool gets = static_cast<int>(r) == root && programs.size() > 1;
    EXPECT_EQ(idle.size(), gets ? 1u : 0u) << what << " on rank " << r;
  }
}

/// A result on one rank: the right bits there, and no message, value or combination that it does not need.
TEST(ReduceProgram, ResultsOnOneRankMoveNoMoreThanNeeded) {
  const Index<2> shape{23, 30}, tile{4, 4};
  std::vector<std::uint64_t> cells;
  for (std::int64_t l = 0; l < 23 * 30; ++l) cells.push_back(mix64(static_cast<std::uint64_t>(l + 9)));
  const std::uint64_t expected = test::reduce_by_definition<std::uint64_t, 2>(shape, tile, cells, Hash());
  for (const int p : {2, 3, 4, 6, 7, 8, 12}) {
    const Case<2> c(Decomposition<2>(shape, choose_process_grid<2>(shape, p), 0.1), tile, cells);
    std::vector<std::string> schedules = schedules_to_try(p);
    for_each_schedule(p, {.most_stages = 4}, [&](const std::vector<Stage>& stages) {
      schedules.push_back(to_text(stages));
      return true;
    });
    for (const std::string& text : schedules)
      for (const int root : {0, p / 2, p - 1})
        for (const bool resolve : {false, true}) {
          const ReductionOptions one{ReductionMethod::tree, text, resolve, false, root},
              all{ReductionMethod::tree, text, resolve, false, -1};
          expect_root(c, one, expected, text);
          std::vector<ReduceProgram> to_one, to_all;
          for (int r = 0; r < p; ++r) {
            to_one.push_back(c.plan.program(r, p, one));
            to_all.push_back(c.plan.program(r, p, all));
          }
          expect_nothing_idle(c.plan.nodes(), to_one, root, text);
          if (!resolve) {
            EXPECT_LE(total_messages(to_one), total_messages(to_all)) << text;
          }
          const bool all_give =
              std::none_of(c.known.begin(), c.known.end(), [](const auto& k) { return k.empty(); });
          if (text == recursive_doubling(p).text() && !resolve && root == p - 1 && all_give) {
            EXPECT_EQ(total_messages(to_one), p - 1) << text;  // a binomial tree
          }
          if (HasFailure()) return;
        }
  }
}

TEST(ReduceProgram, RefusesSchedulesByName) {
  const Decomposition<2> d({23, 30}, {2, 3}, 0);
  const ReductionPlan<2> plan(Tiling<2>(d, {4, 4}), Case<2>::identity(6));
  for (const char* text : {"a4", "a2", "a2,a4", "x", "a2,,a3", "d2", "c4m2,a4", "m1g2a3,n1g3a2"})
    EXPECT_THROW(plan.program(0, 6, {ReductionMethod::tree, text}), UsageError) << text;
  EXPECT_NO_THROW(plan.program(0, 6, {ReductionMethod::tree, "a2,a3"}));
  EXPECT_NO_THROW(plan.program(0, 6, {ReductionMethod::tree, "d2,d3"}));
}

/// docs/reductions.md: 1000^3 cells on 7 x 5 x 3 ranks, tiles of 8^3, tolerance 0.1.
TEST(ReduceProgram, ResolveRoundLeavesFewValues) {
  const Decomposition<3> d({1000, 1000, 1000}, {7, 5, 3}, 0.1);
  const ReductionPlan<3> plan(Tiling<3>(d, {8, 8, 8}), Case<3>::identity(105));
  const auto gather = plan.gather_ranks();
  std::map<int, int> values;
  for (const int g : gather)
    if (g >= 0) ++values[g];
  for (const auto& [rank, count] : values) EXPECT_LE(count, 6) << rank;
  for (int r = 0; r < 105; ++r) {
    ReduceProgram program;
    append_resolve(program, plan.nodes(), gather, r);
    EXPECT_LE(program[0].send.size(), 7u);
    for (const NodeMessage& m : program[0].send) EXPECT_LE(m.nodes.size(), 340u);
  }
}

}  // namespace
}  // namespace isohalo
