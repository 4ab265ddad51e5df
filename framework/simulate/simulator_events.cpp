/// Simulation in order of time, for receivers whose inlet messages queue at.

#include <algorithm>
#include <queue>
#include <tuple>

#include "framework/simulate/simulator_network.hpp"

namespace isohalo::detail {

namespace {

/// A message that reaches the inlet of its receiver.
struct AtInlet {
  double time;
  int to, from, stage;
  friend bool operator>(const AtInlet& a, const AtInlet& b) {
    return std::tuple(a.time, a.to, a.from, a.stage) > std::tuple(b.time, b.to, b.from, b.stage);
  }
};

class EventSimulation {
 public:
  explicit EventSimulation(SimulatedNetwork& network)
      : network_(network),
        traffic_(network.traffic),
        ranks_(static_cast<std::size_t>(traffic_.ranks())),
        states_(ranks_) {}

  void run() {
    network_.result.finish_ns.resize(ranks_);
    network_.result.begin_ns.assign(static_cast<std::size_t>(traffic_.stages()), std::vector<double>(ranks_));
    network_.causes.assign(static_cast<std::size_t>(traffic_.stages()), std::vector<int>(ranks_, -1));
    for (std::size_t r = 0; r < ranks_; ++r) enter(static_cast<int>(r), 0, network_.start(static_cast<int>(r)));
    while (!inlets_.empty()) {
      const AtInlet m = inlets_.top();
      inlets_.pop();
      State& state = states_[static_cast<std::size_t>(m.to)];
      state.inlet_free = std::max(m.time, state.inlet_free) + network_.options.inlet_ns;
      state.arrived.push_back({m.stage, {state.inlet_free, m.from}});
      if (m.stage == state.stage && --state.missing == 0) leave(m.to);
    }
  }

 private:
  struct State {
    int stage = 0;
    std::int64_t missing = 0;  ///< messages of this stage that have not come
    double sent = 0;           ///< when the rank was done with the stage's sends
    double inlet_free = 0;
    std::vector<std::pair<int, SimulatedNetwork::Arrived>> arrived;  ///< of this stage and later ones
  };

  /// The rank begins a stage at `now`, and all further ones in which it waits for nobody.
  void enter(int rank, int stage, double now) {
    State& state = states_[static_cast<std::size_t>(rank)];
    state.stage = stage;
    if (stage == traffic_.stages()) {
      network_.result.finish_ns[static_cast<std::size_t>(rank)] = now;
      return;
    }
    network_.result.begin_ns[static_cast<std::size_t>(stage)][static_cast<std::size_t>(rank)] = now;
    std::int64_t awaited = 0;
    state.sent = network_.send(stage, rank, now, sent_, awaited);
    for (const auto& m : sent_) inlets_.push({m.arrival_ns, m.peer, rank, stage});
    state.missing = awaited - std::count_if(state.arrived.begin(), state.arrived.end(),
                                            [&](const auto& a) { return a.first == stage; });
    if (state.missing == 0) leave(rank);
  }

  /// All messages of the rank's stage have come.
  void leave(int rank) {
    State& state = states_[static_cast<std::size_t>(rank)];
    std::vector<SimulatedNetwork::Arrived> mine;
    for (const auto& [stage, arrived] : state.arrived)
      if (stage == state.stage) mine.push_back(arrived);
    std::erase_if(state.arrived, [&](const auto& a) { return a.first == state.stage; });
    std::sort(mine.begin(), mine.end());
    const double end = network_.finish_stage(state.stage, rank, mine, state.sent);
    enter(rank, state.stage + 1, end);
  }

  SimulatedNetwork& network_;
  const Traffic& traffic_;
  std::size_t ranks_;
  std::vector<State> states_;
  std::priority_queue<AtInlet, std::vector<AtInlet>, std::greater<>> inlets_;
  std::vector<SimulatedTask> sent_;
};

}  // namespace

void simulate_by_events(SimulatedNetwork& network) {
  EventSimulation(network).run();
}

}  // namespace isohalo::detail
