#pragma once
/// How long a schedule takes on a modelled network: the schedule object that is run, rank by rank and
/// message by message, in this process.
///
/// A rank enters a stage when it has finished the one before. It issues its sends in the schedule's order; after
/// the last it takes the stage's messages in order of arrival (ties: by sender), each for `compute`; then it has
/// finished the stage. Messages that come early wait.
///
/// Source: Ruefenacht, Bull, Booth 2017, section 6; LogGP: Alexandrov et al. 1995.

#include <cstdint>
#include <vector>

#include "framework/schedule/schedule.hpp"
#include "framework/schedule/schedule_cost.hpp"
#include "framework/schedule/traffic.hpp"

namespace isohalo {

/// What one message of n bytes costs, with alpha_p = latency, alpha_r = pipeline, beta = per_byte.
enum class NetworkModel : std::uint8_t {
  postal,      ///< the sender is occupied for alpha_p + alpha_r + n beta, and then it has arrived
  pipelining,  ///< the sender is occupied for alpha_r + n beta, and it arrives alpha_p after that
  loggp,  ///< L = alpha_p, o = alpha_r at both ends, G = beta, gap g: the sender is occupied for o, the message
          ///< arrives (n-1) G + L after that, the next may begin g - o after its last byte; taking costs o more
};

struct SimulationOptions {
  NetworkModel model = NetworkModel::pipelining;
  MessageCosts costs = {};
  double bytes = 8;
  double gap_ns = -1;  ///< g of LogGP; below 0: as alpha_r

  double skew_ns = 0;   ///< each rank starts at a random time in [0, skew)
  double noise_ns = 0;  ///< each message takes a random time in [0, noise) longer
  std::uint64_t seed = 1;

  int ranks_per_node = 0;  ///< above 0: consecutive ranks share a compute node, and messages within it cost
                           ///< `on_node`, but `costs.compute_ns` to take
  MessageCosts on_node = {.latency_ns = 100, .pipeline_ns = 50, .per_byte_ns = 0.1, .compute_ns = 10};

  /// Above 0: a rank's inlet lets in one message at a time, in order of arrival, each for this long; a
  /// message has arrived when it is in.
  double inlet_ns = 0;

  bool record_tasks = false;  ///< for timelines; memory O(messages)
};

enum class TaskKind : std::uint8_t { start, sleep, put, compute, proxy };

/// What a rank did from `begin` to `end`. start: nothing yet; sleep: it was late (skew); put: sent to `peer`, where
/// it arrived at `arrival`; compute: took the message of `peer`; proxy: passed into the next stage.
struct SimulatedTask {
  TaskKind kind = TaskKind::start;
  int rank = 0, stage = 0, peer = -1;
  double begin_ns = 0, end_ns = 0, arrival_ns = 0;
};

/// A stage of the rank on the critical path: it ended so late because it waited for a message of `waited_for` (-1:
/// it waited for none after its sends).
struct CriticalStage {
  int stage = 0, rank = 0, waited_for = -1;
  double begin_ns = 0, end_ns = 0;
};

struct SimulationResult {
  std::vector<double> finish_ns;              ///< [rank]
  double first_ns = 0, last_ns = 0;           ///< least and largest of them; the difference is the skew at the end
  std::vector<std::vector<double>> begin_ns;  ///< [stage][rank]: when it entered the stage
  std::vector<std::int64_t> messages;         ///< [stage]
  std::vector<CriticalStage> critical_path;   ///< stage by stage, ending with the rank that finished last
  std::vector<SimulatedTask> tasks;           ///< if recorded, by rank and time
};

/// Simulates. The same options give the same result everywhere, random numbers included. Throws UsageError, naming
/// the option, if one is out of range or if a stage has more than 250 million messages. Local; time O(messages)
/// (with an inlet O(messages log messages)), memory O(stages x ranks + messages of the largest stage).
SimulationResult simulate(const Schedule& schedule, const SimulationOptions& options);

/// The same for any other schedule, whose messages have sizes of their own (`options.bytes` means nothing).
SimulationResult simulate(const Traffic& traffic, const SimulationOptions& options);

}  // namespace isohalo
