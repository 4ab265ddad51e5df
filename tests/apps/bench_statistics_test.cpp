/// The statistics and plots of the benchmarks, against values worked out by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "apps/bench/plot.hpp"
#include "apps/bench/scaling_model.hpp"
#include "apps/bench/statistics.hpp"
#include "datatypes/error.hpp"

namespace isohalo {
namespace {

TEST(Summarize, RemovesOutliersByTukeysRule) {
  // Quartiles of 1..8 and 1000 are 3 and 7; with factor 3 values beyond 7 + 3 * 4 = 19 go.
  const Sample s = summarize({1, 2, 3, 4, 5, 6, 7, 8, 1000});
  EXPECT_EQ(s.taken, 9u);
  EXPECT_EQ(s.kept, 8u);
  EXPECT_DOUBLE_EQ(s.mean, 4.5);
  // Standard deviation sqrt(6), t(7) = 2.365.
  EXPECT_NEAR(s.ci95, 2.365 * std::sqrt(6.0) / std::sqrt(8.0), 1e-12);
  EXPECT_EQ(summarize({1, 2, 3, 4, 5, 6, 7, 8, 19}).kept, 9u);
  EXPECT_EQ(summarize({1, 2, 3, 4, 5, 6, 7, 8, 19.001}).kept, 8u);
}

TEST(Summarize, FewValues) {
  EXPECT_EQ(summarize({}).kept, 0u);
  EXPECT_DOUBLE_EQ(summarize({3}).mean, 3);
  EXPECT_DOUBLE_EQ(summarize({3}).ci95, 0);
  EXPECT_NEAR(summarize({1, 3}).ci95, 12.706 * std::sqrt(2.0) / std::sqrt(2.0), 1e-12);
}

TEST(Plot, PutsPointsWhereTheirLogarithmsAre) {
  Plot plot{"a < b", "x", "y", {{"one", {{1, 10, 0}, {10, 100, 5}, {100, 1000, 0}}}, {"two", {{0, 5, 0}}}}};
  const std::string svg = to_svg(plot);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  // x runs from 80 to 530 pixels over two decades, y from 380 to 40 over two.
  EXPECT_NE(svg.find("points='80.0,380.0 305.0,210.0 530.0,40.0 '"), std::string::npos) << svg;
  EXPECT_NE(svg.find("points=''"), std::string::npos);  // nothing positive
}

TEST(Plot, DrawsColumnsWhereThereIsNoCurve) {
  const std::string svg = to_svg({"set-up", "", "y", {{"one", {{0, 10, 2}}}, {"two", {{0, 100, 0}}}}});
  // Two shares of 225 pixels, a column in the middle half of each; y from 380 (the decade of the least) to 40.
  EXPECT_NE(svg.find("<rect x='136.2' y='380.0' width='112.5' height='0.0'"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<rect x='361.2' y='40.0' width='112.5' height='340.0'"), std::string::npos) << svg;
}

/// Points whose times are made from known costs.
std::vector<MeasuredStep> made_of(const StepCosts& costs) {
  std::vector<MeasuredStep> points;
  for (const int ranks : {1, 2, 4})
    for (const double side : {16.0, 40.0, 100.0})
      for (const double residual : {0.0, 1.0}) {
        StepWork w{ranks,    2,       side * side * side, ranks > 1 ? 2.0 : 0.0, ranks > 1 ? 8 * side * side : 0.0,
                   residual, "memory"};
        points.push_back({amounts_of(w), 0});
        points.back().seconds = costs.seconds(points.back().amounts);
      }
  return points;
}

TEST(ScalingModel, FindsTheCostsThatTimesAreMadeOf) {
  const StepCosts made{{{"cell, memory, 2 cores", 1e-9},
                        {"step", 2e-6},
                        {"message", 5e-7},
                        {"byte", 1e-10},
                        {"residual of a cell, memory, 2 cores", 3e-10},
                        {"sum", 1e-6},
                        {"level of a sum", 4e-7}}};
  const StepCosts found = fit_costs(made_of(made));
  ASSERT_EQ(found.terms.size(), made.terms.size());
  for (const auto& term : made.terms) EXPECT_NEAR(found.of(term.name) / term.seconds, 1, 1e-6) << term.name;
  EXPECT_LT(found.largest_error, 1e-9);
}

TEST(ScalingModel, HasNoCostsBelowZero) {
  // Larger messages that took less time: the byte is free then, and the error is said.
  StepCosts made{{{"cell, memory, 2 cores", 1e-9},
                  {"step", 2e-6},
                  {"message", 4e-5},
                  {"byte", -2e-10},
                  {"residual of a cell, memory, 2 cores", 3e-10},
                  {"sum", 1e-6},
                  {"level of a sum", 4e-7}}};
  const StepCosts found = fit_costs(made_of(made));
  EXPECT_EQ(found.of("byte"), 0);
  for (const auto& term : found.terms) EXPECT_GE(term.seconds, 0) << term.name;
  EXPECT_GT(found.largest_error, 1e-4);
  EXPECT_THROW(found.of("cell, memory, 3 cores"), UsageError);
  EXPECT_THROW(fit_costs({}), UsageError);
}

}  // namespace
}  // namespace isohalo
