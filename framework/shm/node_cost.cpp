#include "framework/shm/node_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace isohalo {

const ReachCosts& NodeCosts::at(int distance) const {
  return reach[std::min(static_cast<std::size_t>(distance), reach.size() - 1)];
}

namespace {

/// Those that read over a link in a stage: from one group of a level into another (or within one, at level's end).
class Links {
 public:
  Links(const NodeSchedule& s, const Hierarchy& h) : hierarchy_(h) {
    for (int r = 0; r < s.ranks; ++r)
      for (int stage = 0; stage < s.stages(); ++stage) {
        for (const Take& t : s.at(r, stage).fills) add(r, stage, t, true);
        for (const Take& t : s.at(r, stage).results) add(r, stage, t, false);
      }
  }
  double readers(int rank, int stage, bool fills, int from) const {
    return static_cast<double>(readers_.at(link(rank, stage, fills, from)).size());
  }

 private:
  using Link = std::tuple<int, bool, int, int, int>;  // stage, fills, level, from, to
  Link link(int rank, int stage, bool fills, int from) const {
    // The groups just below the smallest one that holds both; within an innermost group all share one cache.
    const int level = hierarchy_.levels() - hierarchy_.distance(rank, from) + 1;
    if (level >= hierarchy_.levels())
      return {stage, fills, level, hierarchy_.group(hierarchy_.levels() - 1, rank), 0};
    return {stage, fills, level, hierarchy_.group(level, from), hierarchy_.group(level, rank)};
  }
  void add(int rank, int stage, const Take& take, bool fills) {
    for (const Source& s : take.sources)
      if (s.rank != rank) readers_[link(rank, stage, fills, s.rank)].insert(rank);
  }

  const Hierarchy& hierarchy_;
  std::map<Link, std::set<int>> readers_;
};

}  // namespace

double schedule_ns(const NodeSchedule& schedule, const Hierarchy& h, const NodeCosts& costs, double bytes) {
  const Links links(schedule, h);
  std::vector<double> now(static_cast<std::size_t>(schedule.ranks), 0.0);
  std::map<std::pair<int, int>, double> published;
  const auto clock = [&](int rank) -> double& { return now[static_cast<std::size_t>(rank)]; };
  walk(
      schedule,
      [&](int rank, int stage, const Take& take, bool fills) {
        const double part = bytes * (take.part.last - take.part.first) / take.part.of;
        const double lines = take.empty ? 0 : std::max(1.0, std::ceil(part / kLineBytes));
        double& t = clock(rank);
        bool only_own = true;
        for (const Source& s : take.sources)
          if (s.rank != rank) t = std::max(t, published.at({s.rank, s.stage})), only_own = false;
        if (only_own && take.sources.size() == 1 && !costs.copies_in) return;
        for (const Source& s : take.sources) {
          const ReachCosts c = costs.between ? costs.between(rank, s.rank) : costs.at(h.distance(rank, s.rank));
          const double shared = s.rank == rank ? 0 : c.shared_line_ns * links.readers(rank, stage, fills, s.rank);
          t += c.latency_ns + lines * std::max(c.line_ns, shared);
        }
        t += costs.at(0).latency_ns + lines * costs.at(0).line_ns;
      },
      [&](int rank, int stage) {
        published[{rank, stage}] = clock(rank);
      });
  return *std::max_element(now.begin(), now.end());
}

}  // namespace isohalo
