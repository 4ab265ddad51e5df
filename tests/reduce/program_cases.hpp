#pragma once
/// Reductions by many virtual ranks in process, with real values and an operation that shows any change of order or
/// pairing.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "datatypes/mix.hpp"
#include "framework/reduce/reduction_plan.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/reduce/program_runner.hpp"
#include "tests/reduce/tree_by_definition.hpp"

namespace isohalo::test {

/// Neither associative nor commutative.
struct Hash {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return mix64(a * 3 + mix64(b + 17)); }
};

/// Schedules of all kinds: the planner's best few, recursive doubling, eliminations, disseminations.
inline std::vector<std::string> schedules_to_try(int p) {
  std::set<std::string> texts{recursive_doubling(p).text(), elimination(p).text()};
  PlanOptions options;
  options.for_sets = true;
  for (const Plan& plan : plan_candidates(p, options, 5)) texts.insert(plan.schedule.text());
  for (const int k : {2, 3, 5}) texts.insert(dissemination(p, k).text());
  if (p > 1) texts.erase("");
  return {texts.begin(), texts.end()};
}

/// A decomposition with the values of all leaves of its frontier, formed straight from the definition.
template <int D>
struct Case {
  Case(const Decomposition<D>& d, const Index<D>& tile, const std::vector<std::uint64_t>& cells)
      : tiling(d, tile), plan(tiling, identity(d.ranks())), known(static_cast<std::size_t>(d.ranks())) {
    for (int r = 0; r < d.ranks(); ++r)
      for (const std::int32_t leaf : plan.leaves_of(r))
        known[static_cast<std::size_t>(r)][leaf] =
            tree_by_definition<std::uint64_t, D>(d.global(), tile, plan.tiles(leaf), cells, Hash());
  }
  static std::vector<int> identity(int p) {
    std::vector<int> map;
    for (int r = 0; r < p; ++r) map.push_back(r);
    return map;
  }

  Tiling<D> tiling;
  ReductionPlan<D> plan;
  Holdings<std::uint64_t> known;
};

template <int D>
void expect_root(const Case<D>& c, const ReductionOptions& options, std::uint64_t expected,
                 const std::string& what) {
  const int p = c.tiling.decomposition().ranks();
  std::vector<ReduceProgram> programs;
  for (int r = 0; r < p; ++r) programs.push_back(c.plan.program(r, p, options));
  auto known = c.known;
  run_programs(c.plan.nodes(), programs, known, Hash());
  ASSERT_FALSE(testing::Test::HasFatalFailure()) << what;
  for (int r = 0; r < p; ++r)
    ASSERT_TRUE((options.root >= 0 && options.root != r) || known[static_cast<std::size_t>(r)].at(0) == expected)
        << what << " rank " << r;
}

}  // namespace isohalo::test
