#include "framework/neighborhood/neighbor_choice.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

namespace isohalo {

std::int64_t messages_on(const NeighborSchedule& schedule, const Mesh& mesh) {
  const Mesh ways = schedule.ring ? Mesh({mesh.size()}, {true}) : mesh;
  std::set<std::pair<int, std::vector<int>>> distinct;
  for (const auto& step : schedule.steps) {
    std::vector<int> shift = step.shift;
    bool possible = true, moves = false;
    for (int j = 0; j < ways.dimensions(); ++j) {
      int& c = shift[static_cast<std::size_t>(j)];
      const int n = ways.extent(j);
      if (ways.periodic(j)) c = ((c % n) + n) % n;
      possible = possible && c > -n && c < n;
      moves = moves || c != 0;
    }
    if (possible && moves) distinct.emplace(step.stage, std::move(shift));
  }
  return static_cast<std::int64_t>(distinct.size());
}

AlgorithmFigures figures_of(const NeighborSchedule& schedule, const Mesh& mesh, std::int64_t block_bytes,
                            const LinkCost& link) {
  AlgorithmFigures f;
  f.algorithm = schedule.algorithm;
  f.rounds = schedule.rounds();
  f.messages = messages_on(schedule, mesh);
  f.volume_blocks = schedule.volume();
  f.predicted_s = static_cast<double>(f.messages) * link.latency_s +
                  static_cast<double>(f.volume_blocks) * static_cast<double>(block_bytes) * link.seconds_per_byte;
  return f;
}

NeighborChoice cheapest(std::vector<AlgorithmFigures> candidates, std::int64_t block_bytes) {
  NeighborChoice choice;
  choice.block_bytes = block_bytes;
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [](const auto& a, const auto& b) { return a.predicted_s < b.predicted_s; });
  choice.algorithm = best->algorithm;
  choice.reason = "by the model";
  for (const auto& f : candidates) {
    char text[96];
    std::snprintf(text, sizeof text, "%s %s %.3g us", &f == candidates.data() ? ":" : ",", to_string(f.algorithm),
                  f.predicted_s * 1e6);
    choice.reason += text;
  }
  choice.figures = std::move(candidates);
  return choice;
}

}  // namespace isohalo
