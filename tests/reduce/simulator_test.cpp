/// The simulator: both engines, models, random times, critical paths. (Times against an independent simulator:
/// tests/cli/schedules.py.)

#include "framework/simulate/simulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "framework/simulate/simulator_network.hpp"
#include "framework/simulate/timeline.hpp"

namespace isohalo {
namespace {

Schedule parsed(const char* text, int ranks) {
  return Schedule::parse(text, ranks);
}

const std::pair<const char*, int> kSchedules[] = {{"", 1},
                                                  {"a2", 2},
                                                  {"a3,a2,a4", 24},
                                                  {"c20m4,a3,a3,e20m4", 24},
                                                  {"m5g2a3,a2,n5g6a2", 17},
                                                  {"d3,d3,d3", 26},
                                                  {"x1t1,y1t1,a2,z1t1", 7}};

TEST(Simulator, OneMessageInEachModel) {
  const Schedule pair = parsed("c2m2,e2m2", 2);  // there and back
  SimulationOptions o;
  const auto there = [&] { return simulate(pair, o).begin_ns[1][1] - o.costs.compute_ns; };
  EXPECT_DOUBLE_EQ(there(), 603.2);
  o.model = NetworkModel::postal;
  EXPECT_DOUBLE_EQ(there(), 603.2);
  o.model = NetworkModel::loggp;
  EXPECT_DOUBLE_EQ(there(), 100 + 7 * 0.4 + 500 + 100);
  o.bytes = 0;
  EXPECT_DOUBLE_EQ(there(), 700);
}

TEST(Simulator, SendsFollowEachOtherAsTheModelSays) {
  const Schedule star = parsed("c4m4,e4m4", 4);  // the last rank sends to three
  SimulationOptions o{.costs = {.latency_ns = 1000, .pipeline_ns = 10, .per_byte_ns = 2, .compute_ns = 1},
                      .bytes = 6};
  const auto gaps = [&] {
    const SimulationResult r = simulate(star, o);
    return std::pair(r.finish_ns[1] - r.finish_ns[0], r.finish_ns[2] - r.finish_ns[1]);
  };
  EXPECT_EQ(gaps(), std::pair(22.0, 22.0));
  o.model = NetworkModel::postal;
  EXPECT_EQ(gaps(), std::pair(1022.0, 1022.0));
  o.model = NetworkModel::loggp;
  EXPECT_EQ(gaps(), std::pair(20.0, 20.0));  // o + 5 G
  o.gap_ns = 50;
  EXPECT_EQ(gaps(), std::pair(60.0, 60.0));  // g + 5 G
  o.gap_ns = 0;
  EXPECT_EQ(gaps(), std::pair(10.0, 10.0));  // the bytes leave while the sender works for the next
}

TEST(Simulator, BothEnginesAgreeWithoutAQueue) {
  for (const auto& [text, p] : kSchedules)
    for (auto model : {NetworkModel::postal, NetworkModel::pipelining, NetworkModel::loggp}) {
      SimulationOptions o{.model = model, .skew_ns = 700, .noise_ns = 300, .seed = 11, .ranks_per_node = 5};
      const SimulationResult stages = simulate(parsed(text, p), o);
      o.inlet_ns = 1e-300;
      const SimulationResult events = simulate(parsed(text, p), o);
      EXPECT_EQ(stages.finish_ns, events.finish_ns) << text;
      EXPECT_EQ(stages.begin_ns, events.begin_ns) << text;
      ASSERT_EQ(stages.critical_path.size(), events.critical_path.size());
      for (std::size_t s = 0; s < stages.critical_path.size(); ++s) {
        EXPECT_EQ(stages.critical_path[s].rank, events.critical_path[s].rank);
        EXPECT_EQ(stages.critical_path[s].waited_for, events.critical_path[s].waited_for);
      }
    }
}

TEST(Simulator, AnInletLetsInOneMessageAtATime) {
  // Four ranks send to the fifth at once; each message needs 50 ns at the inlet.
  SimulationOptions o;
  const double free = simulate(parsed("c5m5,e5m5", 5), o).begin_ns[1][4];
  EXPECT_DOUBLE_EQ(free, 603.2 + 4 * 10);
  o.inlet_ns = 50;
  EXPECT_DOUBLE_EQ(simulate(parsed("c5m5,e5m5", 5), o).begin_ns[1][4], 603.2 + 4 * 50 + 10);
  // A message of a later stage takes its turn at the inlet too, and then waits.
  for (const auto& [text, p] : kSchedules) {
    const double without = simulate(parsed(text, p), {}).last_ns;
    EXPECT_LE(without, simulate(parsed(text, p), o).last_ns);
  }
}

TEST(Simulator, RandomTimesAreRepeatableAndBounded) {
  const Schedule schedule = parsed("a3,a2,a4", 24);
  const double plain = simulate(schedule, {}).last_ns;
  std::map<double, int> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SimulationOptions o{.noise_ns = 100, .seed = seed};
    const double last = simulate(schedule, o).last_ns;
    EXPECT_EQ(last, simulate(schedule, o).last_ns);
    EXPECT_GT(last, plain);
    EXPECT_LT(last, plain + 3 * 100);
    ++seen[last];
    const SimulationResult skewed = simulate(schedule, {.skew_ns = 1000, .seed = seed});
    const auto [first, late] = std::minmax_element(skewed.begin_ns[0].begin(), skewed.begin_ns[0].end());
    EXPECT_GE(*first, 0);
    EXPECT_LT(*late, 1000);
    EXPECT_GT(*late - *first, 500);
    EXPECT_LT(skewed.last_ns, plain + 1000);
  }
  EXPECT_EQ(seen.size(), 20u);
}

TEST(Simulator, NodesAreCheaperWithin) {
  SimulationOptions o{.ranks_per_node = 4,
                      .on_node = {.latency_ns = 10, .pipeline_ns = 1, .per_byte_ns = 0, .compute_ns = 10}};
  const double near_first = simulate(parsed("a4,a6", 24), o).last_ns,
               far_first = simulate(parsed("a6,a4", 24), o).last_ns;
  EXPECT_LT(near_first, far_first);  // the first stage of a4,a6 stays on the node
  EXPECT_DOUBLE_EQ(simulate(parsed("a4", 4), o).last_ns, 1 + 10 + 3 * 10);
}

TEST(Simulator, TheCriticalPathHoldsTogether) {
  int through_rank_0 = 0;
  for (const auto& [text, p] : kSchedules)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const SimulationResult r = simulate(parsed(text, p), {.skew_ns = 500, .noise_ns = 200, .seed = seed});
      for (std::size_t s = r.critical_path.size(); s-- > 0;) {
        const CriticalStage& stage = r.critical_path[s];
        EXPECT_EQ(stage.stage, static_cast<int>(s));
        EXPECT_EQ(stage.begin_ns, r.begin_ns[s][static_cast<std::size_t>(stage.rank)]);
        if (s + 1 == r.critical_path.size()) {
          EXPECT_EQ(stage.end_ns, r.last_ns);
        }
        if (s == 0) continue;
        const int origin = stage.waited_for >= 0 ? stage.waited_for : stage.rank;
        EXPECT_EQ(r.critical_path[s - 1].rank, origin);
        if (stage.waited_for < 0) continue;
        through_rank_0 += stage.waited_for == 0;
        EXPECT_GT(stage.end_ns, r.begin_ns[s][static_cast<std::size_t>(origin)] + 500);
      }
    }
  EXPECT_GT(through_rank_0, 0);
}

TEST(Simulator, TasksAreThoseOfTheSchedule) {
  for (const auto& [text, p] : kSchedules) {
    const Schedule schedule = parsed(text, p);
    for (double inlet : {0.0, 5.0}) {
      const SimulationResult r = simulate(schedule, {.skew_ns = 50, .inlet_ns = inlet, .record_tasks = true});
      std::map<TaskKind, std::int64_t> count;
      std::vector<double> busy_until(static_cast<std::size_t>(p));
      for (const auto& t : r.tasks) {
        ++count[t.kind];
        EXPECT_GE(t.begin_ns, busy_until[static_cast<std::size_t>(t.rank)] - 1e-9);
        EXPECT_GE(t.end_ns, t.begin_ns);
        busy_until[static_cast<std::size_t>(t.rank)] = t.end_ns;
      }
      EXPECT_EQ(count[TaskKind::put], schedule.messages());
      EXPECT_EQ(count[TaskKind::compute], schedule.messages());
      EXPECT_EQ(count[TaskKind::start], p);
      EXPECT_EQ(count[TaskKind::sleep], p);
      EXPECT_EQ(count[TaskKind::proxy], std::int64_t{p} * schedule.size());
      for (int q = 0; q < p; ++q)
        EXPECT_EQ(busy_until[static_cast<std::size_t>(q)], r.finish_ns[static_cast<std::size_t>(q)]);
    }
  }
}

TEST(Simulator, RefusesOptionsOutOfRange) {
  const Schedule schedule = parsed("a2", 2);
  EXPECT_THROW(simulate(schedule, {.bytes = -1}), UsageError);
  EXPECT_THROW(simulate(schedule, {.skew_ns = 1e13}), UsageError);
  EXPECT_THROW(simulate(schedule, {.noise_ns = -1}), UsageError);
  EXPECT_THROW(simulate(schedule, {.ranks_per_node = -1}), UsageError);
  EXPECT_THROW(simulate(schedule, {.costs = {.latency_ns = -1}}), UsageError);
  std::ostringstream out;
  EXPECT_THROW(write_svg(out, schedule, {}, simulate(schedule, {})), UsageError);  // no tasks recorded
}

}  // namespace
}  // namespace isohalo
