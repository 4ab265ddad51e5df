/// How many messages a schedule has.

#include <algorithm>
#include <numeric>

#include "framework/schedule/schedule.hpp"

namespace isohalo {

namespace {

/// How many of 0 .. count-1 are `residue` modulo `modulus`.
std::int64_t count_of_class(std::int64_t count, std::int64_t residue, std::int64_t modulus) {
  return residue < count ? (count - residue - 1) / modulus + 1 : 0;
}

}  // namespace

std::int64_t Schedule::messages(int stage) const {
  const Stage& s = stages_[static_cast<std::size_t>(stage)];
  const Place& place = places_[static_cast<std::size_t>(stage)];
  const std::int64_t exchanged = place.active * (s.base - 1);
  switch (s.kind) {
    case StageKind::factor:
      return exchanged;
    case StageKind::collapse:
    case StageKind::expand:
      return std::int64_t{s.threshold / s.base} * (s.base - 1);
    case StageKind::merge:
      return exchanged + s.remainder * place.product * s.base;
    case StageKind::inverse_merge: {
      std::int64_t sum = exchanged;
      for (std::int64_t c = 0; c < std::min(s.groups, s.remainder); ++c)
        sum += count_of_class(s.remainder, c, s.groups) * count_of_class(place.active, c, s.groups);
      return sum;
    }
    case StageKind::dissemination:
      return place.active * most_sends(stage);
    case StageKind::eliminate:
      return place.active + place.threes;
    case StageKind::settle:
    case StageKind::resolve:
      return 2 * std::int64_t{s.threshold} + s.remainder;
  }
  return 0;
}

std::int64_t Schedule::messages() const {
  std::int64_t sum = 0;
  for (int s = 0; s < size(); ++s) sum += messages(s);
  return sum;
}

std::int64_t Schedule::most_sends(int stage) const {
  const Stage& s = stages_[static_cast<std::size_t>(stage)];
  const Place& place = places_[static_cast<std::size_t>(stage)];
  switch (s.kind) {
    case StageKind::factor:
      return s.base - 1;
    case StageKind::collapse:
      return s.threshold > 0 ? 1 : 0;
    case StageKind::expand:
      return s.threshold > 0 ? s.base - 1 : 0;
    case StageKind::merge:
      return s.remainder > 0 ? place.product * s.base : s.base - 1;
    case StageKind::inverse_merge:
      return s.base - 1 + count_of_class(s.remainder, 0, s.groups);
    case StageKind::dissemination: {
      // Multiples of the distance repeat, beginning with the rank itself, after this many.
      const std::int64_t distinct = place.active / std::gcd(place.product, place.active);
      return std::min<std::int64_t>(s.base, distinct) - 1;
    }
    case StageKind::eliminate:
      return 1;
    case StageKind::settle:
    case StageKind::resolve:
      return s.threshold + s.remainder > 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace isohalo
