#include "framework/schedule/rank_set.hpp"

#include <algorithm>
#include <map>

namespace isohalo {

bool RankSet::contains(int rank) const {
  const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), rank,
                                      [](int r, const auto& interval) { return r < interval.first; });
  return after != intervals_.begin() && rank < std::prev(after)->second;
}

void RankSet::insert(const RankSet& other) {
  if (other.intervals_.empty()) return;
  std::vector<std::pair<int, int>> merged;
  merged.reserve(intervals_.size() + other.intervals_.size());
  auto a = intervals_.cbegin(), b = other.intervals_.cbegin();
  while (a != intervals_.cend() || b != other.intervals_.cend()) {
    const bool from_a = b == other.intervals_.cend() || (a != intervals_.cend() && a->first <= b->first);
    const auto interval = from_a ? *a++ : *b++;
    if (!merged.empty() && interval.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, interval.second);
    else
      merged.push_back(interval);
  }
  intervals_ = std::move(merged);
}

namespace {

/// Works backwards from one rank, once per (stage, rank) that matters.
class Tracer {
 public:
  explicit Tracer(const Schedule& schedule) : schedule_(schedule) {}

  const RankSet& holds(int stage, int rank) {
    const auto [at, added] = known_.try_emplace({stage, rank});
    if (!added) return at->second;
    RankSet set;
    if (stage == 0) {
      set = RankSet(rank, rank + 1);
    } else {
      const StageActions a = schedule_.actions(stage - 1, rank);
      if (!a.replace || a.receive.empty()) set = holds(stage - 1, rank);
      for (int peer : a.receive) set.insert(holds(stage - 1, peer));
    }
    return at->second = std::move(set);
  }

 private:
  const Schedule& schedule_;
  std::map<std::pair<int, int>, RankSet> known_;
};

}  // namespace

RankSet contributions(const Schedule& schedule, int stage, int rank) {
  return Tracer(schedule).holds(stage, rank);
}

}  // namespace isohalo
