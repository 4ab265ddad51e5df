#include "framework/simulate/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "datatypes/error.hpp"
#include "framework/simulate/simulator_network.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kMostStageMessages = 250'000'000;

void check(const SimulationOptions& o) {
  const std::pair<double, const char*> times[] = {{o.costs.latency_ns, "latency"},
                                                  {o.costs.pipeline_ns, "pipeline latency"},
                                                  {o.costs.per_byte_ns, "time per byte"},
                                                  {o.costs.compute_ns, "compute time"},
                                                  {o.on_node.latency_ns, "latency on a node"},
                                                  {o.on_node.pipeline_ns, "pipeline latency on a node"},
                                                  {o.on_node.per_byte_ns, "time per byte on a node"},
                                                  {o.bytes, "size in bytes"},
                                                  {o.skew_ns, "skew"},
                                                  {o.noise_ns, "noise"},
                                                  {o.inlet_ns, "inlet time"},
                                                  {std::max(o.gap_ns, 0.0), "gap"}};
  for (const auto& [value, name] : times)
    if (!(value >= 0 && value <= 1e12))
      throw UsageError("simulation: the " + std::string(name) + ", " + std::to_string(value) +
                       ", is out of range: 0 to 1e12");
  if (!std::isfinite(o.gap_ns)) throw UsageError("simulation: the gap is no number");
  if (o.ranks_per_node < 0)
    throw UsageError("simulation: " + std::to_string(o.ranks_per_node) +
                     " ranks per node; it must be 0 (one level) or more");
}

/// From the rank that finished last back to a start.
std::vector<CriticalStage> critical_path(const detail::SimulatedNetwork& network) {
  const SimulationResult& result = network.result;
  std::vector<CriticalStage> path;
  auto rank = static_cast<std::size_t>(std::max_element(result.finish_ns.begin(), result.finish_ns.end()) -
                                       result.finish_ns.begin());
  for (std::size_t s = network.causes.size(); s-- > 0;) {
    const int cause = network.causes[s][rank];
    const double end = s + 1 < network.causes.size() ? result.begin_ns[s + 1][rank] : result.finish_ns[rank];
    path.push_back({static_cast<int>(s), static_cast<int>(rank), cause, result.begin_ns[s][rank], end});
    if (cause >= 0) rank = static_cast<std::size_t>(cause);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

/// Made stage by stage, since a schedule of many ranks is longer than memory.
class ScheduleTraffic final : public Traffic {
 public:
  ScheduleTraffic(const Schedule& schedule, double bytes) : schedule_(schedule), bytes_(bytes) {}
  int ranks() const override { return schedule_.ranks(); }
  int stages() const override { return schedule_.size(); }
  std::int64_t messages(int stage) const override { return schedule_.messages(stage); }
  void sends_of(int stage, int rank, std::vector<Send>& sends, std::int64_t& awaited) const override {
    schedule_.actions(stage, rank, actions_);
    sends.clear();
    for (const int to : actions_.send) sends.push_back({to, bytes_});
    awaited = static_cast<std::int64_t>(actions_.receive.size());
  }

 private:
  const Schedule& schedule_;
  double bytes_;
  mutable StageActions actions_;
};

void record_starts(detail::SimulatedNetwork& network) {
  for (int r = 0; r < network.traffic.ranks(); ++r) {
    const double start = network.start(r);
    network.result.tasks.push_back({TaskKind::start, r, -1, -1, 0, 0, 0});
    if (start > 0) network.result.tasks.push_back({TaskKind::sleep, r, -1, -1, 0, start, start});
  }
}

}  // namespace

void detail::simulate_by_stages(SimulatedNetwork& network) {
  using Arrived = SimulatedNetwork::Arrived;
  const Traffic& traffic = network.traffic;
  const auto ranks = static_cast<std::size_t>(traffic.ranks());
  std::vector<double> now(ranks);
  for (std::size_t r = 0; r < ranks; ++r) now[r] = network.start(static_cast<int>(r));
  std::vector<Traffic::Send> sends;
  std::int64_t awaited = 0;
  std::vector<SimulatedTask> sent;
  std::vector<std::int64_t> first(ranks + 1), next;
  std::vector<Arrived> arrived;
  for (int s = 0; s < traffic.stages(); ++s) {
    network.result.begin_ns.push_back(now);
    network.causes.emplace_back(ranks, -1);
    for (std::size_t r = 0; r < ranks; ++r) {
      traffic.sends_of(s, static_cast<int>(r), sends, awaited);
      first[r + 1] = first[r] + awaited;
    }
    arrived.resize(static_cast<std::size_t>(first[ranks]));
    next.assign(first.begin(), first.end() - 1);
    for (std::size_t r = 0; r < ranks; ++r) {
      const int rank = static_cast<int>(r);
      now[r] = network.send(s, rank, now[r], sent, awaited);
      for (const auto& m : sent)
        arrived[static_cast<std::size_t>(next[static_cast<std::size_t>(m.peer)]++)] = {m.arrival_ns, rank};
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::span mine(arrived.data() + first[r], arrived.data() + first[r + 1]);
      std::sort(mine.begin(), mine.end());
      now[r] = network.finish_stage(s, static_cast<int>(r), mine, now[r]);
    }
  }
  network.result.finish_ns = std::move(now);
}

SimulationResult simulate(const Schedule& schedule, const SimulationOptions& options) {
  check(options);
  for (int s = 0; s < schedule.size(); ++s)
    if (schedule.messages(s) > kMostStageMessages)
      throw UsageError("simulation: stage " + std::to_string(s + 1) + " of " + schedule.text() + " has " +
                       std::to_string(schedule.messages(s)) + " messages; the limit is " +
                       std::to_string(kMostStageMessages) + ": take smaller bases");
  return simulate(ScheduleTraffic(schedule, options.bytes), options);
}

SimulationResult simulate(const Traffic& traffic, const SimulationOptions& options) {
  check(options);
  detail::SimulatedNetwork network(traffic, options);
  SimulationResult& result = network.result;
  for (int s = 0; s < traffic.stages(); ++s) result.messages.push_back(traffic.messages(s));
  if (options.record_tasks) record_starts(network);
  if (options.inlet_ns > 0)
    detail::simulate_by_events(network);
  else
    detail::simulate_by_stages(network);
  const auto [least, most] = std::minmax_element(result.finish_ns.begin(), result.finish_ns.end());
  result.first_ns = *least;
  result.last_ns = *most;
  result.critical_path = critical_path(network);
  std::stable_sort(result.tasks.begin(), result.tasks.end(), [](const SimulatedTask& a, const SimulatedTask& b) {
    return std::tuple(a.rank, a.stage, a.begin_ns) < std::tuple(b.rank, b.stage, b.begin_ns);
  });
  return std::move(network.result);
}

}  // namespace isohalo
