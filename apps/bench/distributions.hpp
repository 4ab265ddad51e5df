#pragma once
/// N numbers dealt out to ranks in contiguous ranges, and how many messages a binary tree reduction of them takes.
///
/// Source: Stelz 2022, "Core-Count Independent Reproducible Reduce", chapters 2 and 3. The tree over indices 0 ..
/// N-1 (equation 2.1) is the reduction tree of version 1 in one dimension with tiles of one number.

#include <cstdint>

#include "framework/reduce/array_reducer.hpp"

namespace isohalo {

/// N / p numbers each, the rest one by one to the first ranks (equation 1.3) or to the last (1.4).
RangeStarts lower_distribution(std::int64_t n, int ranks);
RangeStarts upper_distribution(std::int64_t n, int ranks);
/// The largest power of two not above N / p each, all that is left to the last rank (equation 3.8).
RangeStarts power_of_two_distribution(std::int64_t n, int ranks);
/// The upper distribution with each start moved down to the number with the fewest bits that lies at most
/// alpha N / p below (Algorithm 3, with `parent` of the current index). 0 <= alpha <= 1.
RangeStarts optimised_distribution(std::int64_t n, int ranks, double alpha);

/// Outbound subtree roots of all ranks: the messages of the binary tree reduction when each value travels alone.
/// This is Algorithm 2 with the ranks counted as they are (as printed it leaves the last rank out). O(p + p log N).
std::int64_t message_count(const RangeStarts& starts);

}  // namespace isohalo
