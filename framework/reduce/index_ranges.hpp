#pragma once
/// N numbers dealt out to ranks in contiguous ranges, and what the binary tree over their indices makes of it.
///
/// Source: Stelz 2022, "Core-Count Independent Reproducible Reduce", chapters 2 and 3. The tree over indices 0 ..
/// N-1 (equation 2.1) is the reduction tree of version 1 in one dimension with tiles of one number.

#include <cstdint>
#include <span>
#include <vector>

namespace isohalo {

/// Starts of the ranges: rank r holds the indices starts[r] .. starts[r+1]-1; p+1 numbers from 0 to N that do not
/// fall. Ranks may be empty.
using RangeStarts = std::vector<std::int64_t>;

/// N / p numbers each, the rest one by one to the first ranks (equation 1.3) or to the last (1.4).
RangeStarts lower_distribution(std::int64_t n, int ranks);
RangeStarts upper_distribution(std::int64_t n, int ranks);
/// The largest power of two not above N / p each, all that is left to the last rank (equation 3.8).
RangeStarts power_of_two_distribution(std::int64_t n, int ranks);
/// The upper distribution with each start moved down to the number with the fewest bits that lies at most
/// alpha N / p below (Algorithm 3, with `parent` of the current index). 0 <= alpha <= 1; throws UsageError
/// otherwise.
RangeStarts optimised_distribution(std::int64_t n, int ranks, double alpha);

/// The numbers of each rank -> starts. Throws UsageError for a negative count or more than 2^53 numbers.
RangeStarts starts_of_counts(std::span<const std::int64_t> counts);

/// Outbound subtree roots of all ranks: the messages of the binary tree reduction when each value travels alone.
/// This is Algorithm 2 with the ranks counted as they are (as printed it leaves the last rank out). O(p + p log N).
std::int64_t message_count(const RangeStarts& starts);

/// Which rank holds an index (the thesis' rankFromIndex), in constant expected time: a table of equal sections of
/// the index range, at least two per rank, gives the first rank to look at.
class RankOfIndex {
 public:
  explicit RankOfIndex(RangeStarts starts);
  /// 0 <= index < N.
  int operator()(std::int64_t index) const {
    int r = first_[static_cast<std::size_t>(index >> shift_)];
    while (starts_[static_cast<std::size_t>(r) + 1] <= index) ++r;
    return r;
  }

 private:
  RangeStarts starts_;
  std::vector<int> first_;
  int shift_ = 0;
};

}  // namespace isohalo
