/// Costs, enumeration, planner, table of schedules.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "apps/isohalo/schedule_table.hpp"
#include "datatypes/error.hpp"
#include "datatypes/mix.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_run.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/schedule_by_definition.hpp"

namespace isohalo {
namespace {

TEST(Cost, FormulasOfTheStages) {
  const MessageCosts c{.latency_ns = 1000, .pipeline_ns = 10, .per_byte_ns = 0.5, .compute_ns = 7};
  const auto sends = [&](const char* text, int p) { return (model_ns(Schedule::parse(text, p), c, 4)) / 12; };
  const double alpha = 1000.0 / 12;
  EXPECT_DOUBLE_EQ(sends("a5,a3", 15), 2 * alpha + 4 + 2);
  EXPECT_DOUBLE_EQ(sends("c9m3,a5,e9m3", 11), 3 * alpha + 1 + 4 + 2);
  EXPECT_DOUBLE_EQ(sends("m1g2a3,n1g3a2", 7), 2 * alpha + 3 + 2);          // max(2, 3), 1 + ceil(1/3)
  EXPECT_DOUBLE_EQ(sends("m5g2a3,a2,n5g6a2", 17), 3 * alpha + 3 + 1 + 2);  // 1 + ceil(5/6)
  EXPECT_DOUBLE_EQ(sends("m9g3a2,n9g2a3", 15), 2 * alpha + 2 + 2 + 5);     // 2 + ceil(9/2)
  EXPECT_DOUBLE_EQ(sends("d3,d3", 9), 2 * alpha + 4);
}

std::int64_t ordered_factorisations(int n) {
  if (n == 1) return 1;
  std::int64_t sum = 0;
  for (int b = 2; b <= n; ++b)
    if (n % b == 0) sum += ordered_factorisations(n / b);
  return sum;
}

TEST(Enumeration, AllAreCorrectWithRealValuesAndCounted) {
  std::int64_t total = 0;
  for (int p = 1; p <= 64; ++p) {
    std::int64_t plain = 0, collapses = 0, expected_collapses = 0;
    std::set<std::string> texts;
    // Values whose sum is exact in any order, so that it can be compared; and words that show every contribution.
    std::vector<double> values;
    double sum = 0;
    for (int r = 0; r < p; ++r) {
      values.push_back(static_cast<double>(mix64(static_cast<std::uint64_t>(r + 1) * kGolden) >> 20));
      sum += values.back();
    }
    for_each_schedule(p, {}, [&](const std::vector<Stage>& stages) {
      ++total;
      const Schedule schedule(stages, p);  // throws unless it is an allreduce
      plain += schedule.size() == 0 || (stages[0].kind == StageKind::factor);
      collapses += schedule.size() > 0 && stages[0].kind == StageKind::collapse;
      std::vector<double> results = values;
      run_in_process(schedule, results, std::plus<>());
      for (double v : results) EXPECT_EQ(v, sum) << schedule.text();
      if (p <= 20) {
        EXPECT_TRUE(texts.insert(schedule.text()).second) << schedule.text() << " twice";
      }
      return !testing::Test::HasFailure();
    });
    for (int base = 2; base <= p; ++base)
      for (int t = base; t <= p; t += base) expected_collapses += ordered_factorisations(p - t / base * (base - 1));
    EXPECT_EQ(plain, ordered_factorisations(p));
    EXPECT_EQ(collapses, expected_collapses);
  }
  RecordProperty("schedules", static_cast<int>(total));
  EXPECT_GT(total, 80000);
}

TEST(Enumeration, HoldsEverythingOfTheDefinition) {
  // All texts over a small alphabet that the definition calls valid, of the shapes that enumeration promises.
  for (int p : {5, 6, 7, 8}) {
    std::set<std::string> enumerated;
    for_each_schedule(p, {}, [&](const std::vector<Stage>& s) { return enumerated.insert(to_text(s)), true; });
    std::vector<std::string> firsts, middles{""}, lasts;
    for (int b = 2; b <= p; ++b) {
      middles.push_back("a" + std::to_string(b));
      for (int t = 1; t <= p; ++t)
        firsts.push_back("c" + std::to_string(t) + "m" + std::to_string(b)),
            lasts.push_back("e" + firsts.back().substr(1));
      for (int r = 1; r < p; ++r)
        for (int g = 1; g <= r; ++g)
          firsts.push_back("m" + std::to_string(r) + "g" + std::to_string(g) + "a" + std::to_string(b));
      // The classes of members that serve a remainder rank: one of each block of equal values.
      for (int r = 1; r < p; ++r)
        if ((p - r) % b == 0)
          lasts.push_back("n" + std::to_string(r) + "g" + std::to_string((p - r) / b) + "a" + std::to_string(b));
    }
    for (const auto& first : firsts)
      for (const auto& middle : middles)
        for (const auto& last : lasts) {
          if ((first[0] == 'c') != (last[0] == 'e')) continue;
          const std::string text = first + (middle.empty() ? "" : "," + middle) + "," + last;
          if (test::DefinedSchedule(text, p).valid) {
            EXPECT_TRUE(enumerated.count(text)) << text << " for " << p;
          }
        }
  }
}

TEST(Enumeration, KeepsToItsLimits) {
  int seen = 0;
  for_each_schedule(24, {.most_sends = 3, .most_stages = 4}, [&](const std::vector<Stage>& stages) {
    ++seen;
    const Schedule schedule(stages, 24);
    EXPECT_LE(schedule.size(), 4);
    for (int s = 0; s < schedule.size(); ++s) EXPECT_LE(schedule.most_sends(s), 3);
    return true;
  });
  EXPECT_GT(seen, 10);
  int stopped = 0;
  for_each_schedule(64, {}, [&](const auto&) { return ++stopped < 5; });
  EXPECT_EQ(stopped, 5);
}

TEST(Plan, IsTheCheapestOfAllSchedules) {
  const MessageCosts networks[] = {{},
                                   {.latency_ns = 1340, .pipeline_ns = 340},
                                   {.latency_ns = 100, .pipeline_ns = 100},
                                   {.latency_ns = 10000, .pipeline_ns = 1},
                                   {.latency_ns = 0, .pipeline_ns = 5}};
  for (const auto& costs : networks)
    for (int p = 1; p <= 40; ++p)
      for (double bytes : {8.0, 4096.0}) {
        double least = 1e300;
        for_each_schedule(p, {}, [&](const std::vector<Stage>& stages) {
          return least = std::min(least, model_ns(Schedule(stages, p), costs, bytes)), true;
        });
        const Plan plan = plan_by_model(p, {.costs = costs, .bytes = bytes});
        ASSERT_NEAR(plan.model_ns, least, 1e-9 * least) << p << " " << plan.schedule.text();
      }
}

TEST(Plan, AnswersForEveryNumberOfRanks) {
  for (int p : {1, 2, 3, 97, 997, 1000, 65536, 65537, 1048583}) {
    const Plan plan = plan_by_model(p, {});
    EXPECT_LE(plan.model_ns, model_ns(recursive_doubling(p), {}, 8)) << plan.schedule.text();
    const Plan sets = plan_by_model(p, {.for_sets = true});
    EXPECT_LE(sets.model_ns, plan.model_ns * (1 + 1e-12)) << sets.schedule.text();
  }
  for (int p = 1; p <= 300; ++p) {
    EXPECT_TRUE(keeps_rank_order(plan_by_model(p, {.rank_order = true}).schedule)) << p;
    EXPECT_LE(dissemination(p, 3).size(), std::ceil(std::log(p) / std::log(3) - 1e-9));
  }
  EXPECT_THROW(plan_by_model(0, {}), UsageError);
  EXPECT_THROW(plan_by_model(8, {.bytes = -1}), UsageError);
  EXPECT_THROW(plan_by_model(8, {.for_sets = true, .rank_order = true}), UsageError);
}

TEST(Plan, CandidatesAreDifferentAndInOrder) {
  for (int p : {7, 12, 64, 105, 1009}) {
    const auto plans = plan_candidates(p, {}, 12);
    EXPECT_EQ(plans.size(), 12u);
    EXPECT_EQ(plans[0].schedule.text(), plan_by_model(p, {}).schedule.text());
    std::set<std::string> texts;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      EXPECT_TRUE(texts.insert(plans[i].schedule.text()).second);
      if (i == 0) continue;
      EXPECT_GE(plans[i].model_ns, plans[i - 1].model_ns * (1 - 1e-12));
    }
  }
}

TEST(Generators, RecursiveDoublingIsMpichs) {
  EXPECT_EQ(recursive_doubling(1).text(), "");
  EXPECT_EQ(recursive_doubling(8).text(), "a2,a2,a2");
  EXPECT_EQ(recursive_doubling(6).text(), "c4m2,a2,a2,e4m2");
  EXPECT_EQ(recursive_doubling(7).text(), "c6m2,a2,a2,e6m2");
}

TEST(Generators, EliminationsAreAllreducesInRankOrder) {
  EXPECT_EQ(elimination(7).text(), "x1t1,y1t1,a2,z1t1");  // the four 0..3 by 2-1, the three 4..6 by 3-2 elimination
  EXPECT_EQ(elimination(6).text(), "x0t2,y0t2,a2,z0t2");
  EXPECT_EQ(elimination(8).text(), "a2,a2,a2");
  for (int p = 1; p <= 300; ++p) {
    const Schedule schedule = elimination(p);
    EXPECT_TRUE(keeps_rank_order(schedule)) << schedule.text();
    EXPECT_LE(schedule.size(), static_cast<int>(std::ceil(std::log2(p))) + 1);
    for (int s = 0; s < schedule.size(); ++s) {
      std::int64_t messages = 0, most = 0, received = 0;
      for (int r = 0; r < p; ++r) {
        const StageActions a = schedule.actions(s, r);
        messages += static_cast<std::int64_t>(a.send.size());
        received += static_cast<std::int64_t>(a.receive.size());
        most = std::max(most, static_cast<std::int64_t>(a.send.size()));
        for (int to : a.send) {
          const auto peer = schedule.actions(s, to).receive;
          EXPECT_EQ(std::count(peer.begin(), peer.end(), r), 1);
        }
      }
      EXPECT_EQ(schedule.messages(s), messages);
      EXPECT_EQ(received, messages);
      EXPECT_EQ(schedule.most_sends(s), most);
    }
  }
  EXPECT_EQ(Schedule::parse("x1t1,y1t1,a2,z1t1", 7).actions(0, 5).receive, (std::vector<int>{4, 6}));
  for (const char* text :
       {"x2t0,y2t0,a2,z2t0", "x1t1,a2,z1t1", "x1t1,y1t1,a2", "y1t1,a2,z1t1", "x1t1,y0t1,a2,z0t1"})
    EXPECT_THROW(Schedule::parse(text, 7), UsageError) << text;
}

TEST(Table, KeepsWhatIsPutIntoIt) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("isohalo_table_" + std::to_string(::getpid()))).string();
  ScheduleTable table = ScheduleTable::read(file);
  EXPECT_TRUE(table.entries().empty());
  table.put({"here", 7, 64, "a7", 1500, "timing"});
  table.put({"here", 7, 8, "m1g2a3,n1g3a2", 2047.25, "timing"});
  table.put({"there", 7, 8, "c6m2,a4,e6m2", 3, "model"});
  table.put({"here", 7, 64, "m3g2a2,n3g2a2", 1400, "model"});
  table.write(file);
  const ScheduleTable again = ScheduleTable::read(file);
  ASSERT_EQ(again.entries().size(), 3u);
  EXPECT_EQ(again.entries()[0].time_ns, 2047.25);
  EXPECT_EQ(again.find("here", 7, 1)->text(), "m1g2a3,n1g3a2");
  EXPECT_EQ(again.find("here", 7, 9)->text(), "m3g2a2,n3g2a2");
  EXPECT_FALSE(again.find("here", 7, 65));
  EXPECT_FALSE(again.find("here", 6, 8));
  EXPECT_FALSE(again.find("elsewhere", 7, 8));
  EXPECT_THROW(table.put({"here", 6, 8, "a7", 1, "model"}), UsageError);
  EXPECT_THROW(table.put({"here", 7, 0, "a7", 1, "model"}), UsageError);
  const char* const bad[] = {
      "",
      "[]",
      "{}",
      "{\"isohalo_schedule_table\": 2, \"entries\": []}",
      "{\"isohalo_schedule_table\": 1, \"entries\": [{\"machine\": \"x\"}]}",
      "{\"isohalo_schedule_table\": 1, \"entries\": [{\"machine\": \"x\", \"ranks\": 7.5, \"bytes\": 8, "
      "\"schedule\": \"a7\", \"time_ns\": 1, \"method\": \"model\"}]}",
      "{\"isohalo_schedule_table\": 1, \"entries\": [{\"machine\": \"x\", \"ranks\": 8, \"bytes\": 8, "
      "\"schedule\": \"a7\", \"time_ns\": 1, \"method\": \"model\"}]}",
      "{\"isohalo_schedule_table\": 1, \"entries\": [{\"machin\": \"x\", \"ranks\": 7, \"bytes\": 8, "
      "\"schedule\": \"a7\", \"time_ns\": 1, \"method\": \"model\"}]}"};
  for (const char* text : bad) {
    std::ofstream(file) << text;
    EXPECT_THROW(ScheduleTable::read(file), UsageError) << text;
  }
  std::filesystem::remove(file);
  EXPECT_THROW(table.write("/no such directory/table"), RunError);
}

}  // namespace
}  // namespace isohalo
