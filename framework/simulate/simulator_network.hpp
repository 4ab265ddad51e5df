#pragma once
/// The parts of a simulation that both of its loops use.

#include <algorithm>
#include <utility>
#include <vector>

#include "datatypes/mix.hpp"
#include "framework/simulate/simulator.hpp"

namespace isohalo::detail {

/// Sends and takes of one rank in one stage.
class SimulatedNetwork {
 public:
  struct Sent {
    int to;
    double begin, end, arrival;
  };
  struct Arrived {
    double time;
    int from;
    friend bool operator<(const Arrived& a, const Arrived& b) {
      return std::pair(a.time, a.from) < std::pair(b.time, b.from);
    }
  };

  explicit SimulatedNetwork(const SimulationOptions& options) : o_(options) {}

  double start(int rank) const { return o_.skew_ns > 0 ? o_.skew_ns * uniform(rank, -1, 0) : 0; }

  /// The rank's messages, sent one after the other from `now`; returns when the rank is done with sending.
  double send(int stage, int rank, const std::vector<Traffic::Send>& sends, double now,
              std::vector<Sent>& sent) const {
    sent.clear();
    double link_free = now;
    const double gap = o_.gap_ns < 0 ? o_.costs.pipeline_ns : o_.gap_ns;
    for (std::size_t k = 0; k < sends.size(); ++k) {
      const auto& [to, bytes] = sends[k];
      const bool near = on_one_node(rank, to);
      const MessageCosts& c = near ? o_.on_node : o_.costs;
      const double late = o_.noise_ns > 0 ? o_.noise_ns * uniform(rank, stage, k) : 0;
      Sent s{to, now, 0, 0};
      if (o_.model == NetworkModel::loggp) {
        s.begin = std::max(now, link_free);
        s.end = s.begin + c.pipeline_ns;
        const double last_byte = s.end + std::max(0.0, bytes - 1) * c.per_byte_ns;
        s.arrival = last_byte + c.latency_ns + late;
        link_free = last_byte + (near && o_.gap_ns < 0 ? c.pipeline_ns : gap) - c.pipeline_ns;
      } else {
        s.end = now + c.send_ns(bytes) + (o_.model == NetworkModel::postal ? c.latency_ns : 0);
        s.arrival = s.end + (o_.model == NetworkModel::postal ? 0 : c.latency_ns) + late;
      }
      now = s.end;
      sent.push_back(s);
    }
    return now;
  }

  /// What taking a message costs its receiver.
  double take_ns(int from, int to) const {
    if (o_.model != NetworkModel::loggp) return o_.costs.compute_ns;
    return o_.costs.compute_ns + (on_one_node(from, to) ? o_.on_node : o_.costs).pipeline_ns;
  }

  /// `rank` takes the messages of `arrived`, which must be sorted, from `now`. Returns the end, and in `waited_for`
  /// the sender of the last message that the rank waited for, -1 if it waited for none. `record(from, begin, end)`
  /// sees each.
  template <class Record>
  double take(int rank, const Arrived* arrived, const Arrived* end, double now, int& waited_for,
              Record&& record) const {
    waited_for = -1;
    for (; arrived != end; ++arrived) {
      if (arrived->time > now) {
        now = arrived->time;
        waited_for = arrived->from;
      }
      const double cost = take_ns(arrived->from, rank);
      record(arrived->from, now, now + cost);
      now += cost;
    }
    return now;
  }

 private:
  bool on_one_node(int a, int b) const {
    return o_.ranks_per_node > 0 && a / o_.ranks_per_node == b / o_.ranks_per_node;
  }
  /// In [0, 1), by counter.
  double uniform(int rank, int stage, std::size_t index) const {
    const std::uint64_t key = mix64(o_.seed * kGolden + static_cast<std::uint64_t>(rank));
    const std::uint64_t z = mix64(key + static_cast<std::uint64_t>(stage + 2) * kGolden) + (index + 1) * kGolden;
    return static_cast<double>(mix64(z) >> 11) * 0x1p-53;
  }

  const SimulationOptions& o_;
};

/// What the loops fill in for each stage and rank.
struct SimulationRecord {
  SimulationRecord(const Traffic& t, const SimulationOptions& o) : traffic(t), options(o), network(o) {}

  void put(int stage, int rank, const std::vector<SimulatedNetwork::Sent>& sent) {
    if (!options.record_tasks) return;
    for (const auto& s : sent)
      result.tasks.push_back({TaskKind::put, rank, stage, s.to, s.begin, s.end, s.arrival});
  }
  /// Ends a stage of a rank: takes its sorted arrivals, notes why it ended when it did, returns when.
  double finish_stage(int stage, int rank, const SimulatedNetwork::Arrived* arrived,
                      const SimulatedNetwork::Arrived* last, double now) {
    int& cause = causes[static_cast<std::size_t>(stage)][static_cast<std::size_t>(rank)];
    const double end = network.take(rank, arrived, last, now, cause, [&](int from, double b, double e) {
      if (options.record_tasks) result.tasks.push_back({TaskKind::compute, rank, stage, from, b, e, b});
    });
    if (options.record_tasks) result.tasks.push_back({TaskKind::proxy, rank, stage, -1, end, end, end});
    return end;
  }

  const Traffic& traffic;
  const SimulationOptions& options;
  SimulatedNetwork network;
  SimulationResult result;
  std::vector<std::vector<int>> causes;  ///< [stage][rank]: see CriticalStage::waited_for
};

/// Stage by stage, all ranks of one before any of the next: without an inlet a stage depends on the stages before
/// only.
void simulate_by_stages(SimulationRecord& record);
/// In order of time.
void simulate_by_events(SimulationRecord& record);

}  // namespace isohalo::detail
