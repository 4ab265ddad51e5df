#include "apps/bench/distributions.hpp"

#include <algorithm>
#include <bit>

namespace isohalo {

namespace {

/// Where the subtree that hangs on `index` as a right child ends: its lowest set bit is its size.
std::int64_t subtree_end(std::int64_t index) {
  return (index | (index - 1)) + 1;
}

std::int64_t parent(std::int64_t index) {
  return index & (index - 1);
}

}  // namespace

RangeStarts lower_distribution(std::int64_t n, int ranks) {
  RangeStarts starts;
  for (std::int64_t r = 0; r <= ranks; ++r) starts.push_back(r * (n / ranks) + std::min(r, n % ranks));
  return starts;
}

RangeStarts upper_distribution(std::int64_t n, int ranks) {
  RangeStarts starts;
  for (std::int64_t r = 0; r <= ranks; ++r)
    starts.push_back(r * (n / ranks) + std::max<std::int64_t>(0, r - (ranks - n % ranks)));
  return starts;
}

RangeStarts power_of_two_distribution(std::int64_t n, int ranks) {
  const auto each = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n / ranks)));
  RangeStarts starts;
  for (std::int64_t r = 0; r < ranks; ++r) starts.push_back(r * each);
  starts.push_back(n);
  return starts;
}

RangeStarts optimised_distribution(std::int64_t n, int ranks, double alpha) {
  RangeStarts starts = upper_distribution(n, ranks);
  const double slack = alpha * static_cast<double>(n) / ranks;
  for (std::size_t r = 1; r + 1 < starts.size(); ++r) {
    const std::int64_t initial = starts[r];
    std::int64_t current = initial;
    while (current > 0 && static_cast<double>(initial - parent(current)) <= slack) current = parent(current);
    starts[r] = std::max(current, starts[r - 1]);
  }
  return starts;
}

std::int64_t message_count(const RangeStarts& starts) {
  std::int64_t count = 0;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r)
    for (std::int64_t index = starts[r]; index > 0 && index < starts[r + 1]; index = subtree_end(index)) ++count;
  return count;
}

}  // namespace isohalo
