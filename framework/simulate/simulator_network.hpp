#pragma once
/// The parts of a simulation that both of its loops use.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "datatypes/mix.hpp"
#include "framework/simulate/simulator.hpp"

namespace isohalo::detail {

/// Sends and takes of one rank in one stage, and what the loops fill in for each.
class SimulatedNetwork {
 public:
  struct Arrived {
    double time;
    int from;
    friend bool operator<(const Arrived& a, const Arrived& b) {
      return std::pair(a.time, a.from) < std::pair(b.time, b.from);
    }
  };

  SimulatedNetwork(const Traffic& t, const SimulationOptions& o) : traffic(t), options(o) {}

  double start(int rank) const { return options.skew_ns > 0 ? options.skew_ns * uniform(rank, -1, 0) : 0; }

  /// The rank's messages into `sent`, one after the other from `now`; returns when the rank is done with sending.
  /// `awaited`: how many it waits for.
  double send(int stage, int rank, double now, std::vector<SimulatedTask>& sent, std::int64_t& awaited) {
    traffic.sends_of(stage, rank, sends_, awaited);
    sent.clear();
    double link_free = now;
    const double gap = options.gap_ns < 0 ? options.costs.pipeline_ns : options.gap_ns;
    for (std::size_t k = 0; k < sends_.size(); ++k) {
      const auto& [to, bytes] = sends_[k];
      const bool near = on_one_node(rank, to);
      const MessageCosts& c = near ? options.on_node : options.costs;
      const double late = options.noise_ns > 0 ? options.noise_ns * uniform(rank, stage, k) : 0;
      SimulatedTask s{TaskKind::put, rank, stage, to, now, 0, 0};
      if (options.model == NetworkModel::loggp) {
        s.begin_ns = std::max(now, link_free);
        s.end_ns = s.begin_ns + c.pipeline_ns;
        const double last_byte = s.end_ns + std::max(0.0, bytes - 1) * c.per_byte_ns;
        s.arrival_ns = last_byte + c.latency_ns + late;
        link_free = last_byte + (near && options.gap_ns < 0 ? c.pipeline_ns : gap) - c.pipeline_ns;
      } else {
        s.end_ns = now + c.send_ns(bytes) + (options.model == NetworkModel::postal ? c.latency_ns : 0);
        s.arrival_ns = s.end_ns + (options.model == NetworkModel::postal ? 0 : c.latency_ns) + late;
      }
      now = s.end_ns;
      sent.push_back(s);
    }
    if (options.record_tasks) result.tasks.insert(result.tasks.end(), sent.begin(), sent.end());
    return now;
  }

  /// Ends a stage of a rank: takes its sorted arrivals from `now` on, notes why it ended when it did, returns when.
  double finish_stage(int stage, int rank, std::span<const Arrived> arrived, double now) {
    int& cause = causes[static_cast<std::size_t>(stage)][static_cast<std::size_t>(rank)];
    for (const auto& [time, from] : arrived) {
      if (time > now) now = time, cause = from;
      const double begin = now;
      now += take_ns(from, rank);
      if (options.record_tasks) result.tasks.push_back({TaskKind::compute, rank, stage, from, begin, now, begin});
    }
    if (options.record_tasks) result.tasks.push_back({TaskKind::proxy, rank, stage, -1, now, now, now});
    return now;
  }

  const Traffic& traffic;
  const SimulationOptions& options;
  SimulationResult result;
  std::vector<std::vector<int>> causes;  ///< [stage][rank], at first -1: see CriticalStage::waited_for

 private:
  /// What taking a message costs its receiver.
  double take_ns(int from, int to) const {
    if (options.model != NetworkModel::loggp) return options.costs.compute_ns;
    return options.costs.compute_ns + (on_one_node(from, to) ? options.on_node : options.costs).pipeline_ns;
  }
  bool on_one_node(int a, int b) const {
    return options.ranks_per_node > 0 && a / options.ranks_per_node == b / options.ranks_per_node;
  }
  /// In [0, 1), by counter.
  double uniform(int rank, int stage, std::size_t index) const {
    const std::uint64_t key = mix64(options.seed * kGolden + static_cast<std::uint64_t>(rank));
    const std::uint64_t z = mix64(key + static_cast<std::uint64_t>(stage + 2) * kGolden) + (index + 1) * kGolden;
    return static_cast<double>(mix64(z) >> 11) * 0x1p-53;
  }

  std::vector<Traffic::Send> sends_;  ///< of the rank that sends
};

/// Stage by stage, all ranks of one before any of the next: without an inlet a stage depends on the stages before
/// only.
void simulate_by_stages(SimulatedNetwork& network);
/// In order of time.
void simulate_by_events(SimulatedNetwork& network);

}  // namespace isohalo::detail
