#pragma once
/// Sets of ranks as sorted intervals, and who has contributed to what a rank holds.

#include <utility>
#include <vector>

#include "framework/schedule/schedule.hpp"

namespace isohalo {

/// A set of ranks: disjoint half-open intervals [first, last), ascending, with gaps between them.
class RankSet {
 public:
  RankSet() = default;
  /// The interval [first, last), empty unless first < last.
  RankSet(int first, int last) {
    if (first < last) intervals_.push_back({first, last});
  }
  const std::vector<std::pair<int, int>>& intervals() const { return intervals_; }
  bool contains(int rank) const;
  void insert(const RankSet& other);  ///< union

  friend bool operator==(const RankSet&, const RankSet&) = default;

 private:
  std::vector<std::pair<int, int>> intervals_;
};

/// The ranks whose contributions are in what `rank` holds at the start of `stage` (0 ..; the schedule's size: at
/// the end). What a partial-result set needs to know about its peers. Time O(ranks) at most, for schedules without
/// dissemination the size of the result.
RankSet contributions(const Schedule& schedule, int stage, int rank);

}  // namespace isohalo
