#include "framework/schedule/schedule.hpp"

#include <algorithm>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule_check.hpp"

namespace isohalo {

namespace {

/// The factor by which a stage makes the groups larger that hold the same value.
std::int64_t growth(const Stage& stage) {
  switch (stage.kind) {
    case StageKind::collapse:
    case StageKind::expand:
    case StageKind::settle:
    case StageKind::resolve:
      return 1;
    case StageKind::eliminate:
      return 2;
    default:
      return stage.base;
  }
}

/// Where a rank stands in an elimination: `index` in its group of `size` ranks that begins at `first`.
struct Seat {
  int first, size, index;
};

Seat seat_of(int fours, int threes, int rank) {
  const int after_fours = 4 * fours, after_threes = after_fours + 3 * threes;
  const int size = rank < after_fours ? 4 : rank < after_threes ? 3 : 2;
  const int start = rank < after_fours ? 0 : rank < after_threes ? after_fours : after_threes;
  const int index = (rank - start) % size;
  return {rank - index, size, index};
}

/// The two of a group that stay.
constexpr int kStays[5][2] = {{}, {}, {0, 1}, {1, 2}, {1, 3}};

}  // namespace

Schedule::Schedule(std::vector<Stage> stages, int ranks) : stages_(std::move(stages)), ranks_(ranks) {
  if (ranks < 1 || ranks > kMostScheduleRanks)
    throw UsageError("a schedule for " + std::to_string(ranks) + " ranks: there must be 1 to " +
                     std::to_string(kMostScheduleRanks));
  place_stages();
  check_allreduce(*this);
}

Schedule Schedule::parse(std::string_view text, int ranks) {
  return Schedule(parse_stages(text), ranks);
}

bool Schedule::for_sets_only() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& s) { return s.kind == StageKind::dissemination; });
}

void Schedule::place_stages() {
  Place place;
  place.active = ranks_;
  for (int s = 0; s < size(); ++s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    detail::check_numbers(stages_, ranks_, s);
    if (stage.kind == StageKind::collapse) {
      place.collapsed = stage.threshold;
      place.collapse_base = stage.base;
      place.active = ranks_ - std::int64_t{stage.threshold / stage.base} * (stage.base - 1);
    } else if (stage.kind == StageKind::merge) {
      place.remainder = stage.remainder;
      place.active = ranks_ - stage.remainder;
    } else if (stage.kind == StageKind::eliminate) {
      place.fours = stage.threshold;
      place.threes = stage.remainder;
      place.active = ranks_ - 2 * std::int64_t{place.fours} - place.threes;
    }
    places_.push_back(place);
    detail::check_groups(stages_, ranks_, s, place.product, place.active);
    place.product *= growth(stage);
  }
}

std::int64_t Schedule::virtual_of(const Place& p, int rank) const {
  if (p.fours >= 0) {
    const Seat seat = seat_of(p.fours, p.threes, rank);
    const std::int64_t member = seat.index == kStays[seat.size][1];
    if (seat.index != kStays[seat.size][member]) return -1;
    const std::int64_t groups_before = seat.size == 4 ? seat.first / 4
                                       : seat.size == 3
                                           ? p.fours + (seat.first - 4 * p.fours) / 3
                                           : p.fours + p.threes + (seat.first - 4 * p.fours - 3 * p.threes) / 2;
    return 2 * groups_before + member;
  }
  if (rank < p.collapsed) return rank % p.collapse_base == p.collapse_base - 1 ? rank / p.collapse_base : -1;
  if (p.collapsed > 0) return rank - std::int64_t{p.collapsed / p.collapse_base} * (p.collapse_base - 1);
  return rank < p.remainder ? -1 : rank - p.remainder;
}

int Schedule::real_of(const Place& p, std::int64_t w) const {
  if (p.fours >= 0) {
    const auto group = static_cast<int>(w / 2), size = group < p.fours ? 4 : group < p.fours + p.threes ? 3 : 2;
    const int first = size * group + (size < 4 ? p.fours : 0) * (4 - size) + (size == 2 ? p.threes : 0);
    return first + kStays[size][w % 2];
  }
  const std::int64_t stayed = p.collapsed / p.collapse_base;
  if (w < stayed) return static_cast<int>(w * p.collapse_base + p.collapse_base - 1);
  return static_cast<int>(w + stayed * (p.collapse_base - 1) + p.remainder);
}

void Schedule::actions(int stage, int rank, StageActions& a) const {
  a.send.clear();
  a.receive.clear();
  a.own = 0;
  a.replace = false;
  const std::int64_t w = virtual_of(places_[static_cast<std::size_t>(stage)], rank);
  switch (stages_[static_cast<std::size_t>(stage)].kind) {
    case StageKind::factor:
      return factor_actions(stage, w, a);
    case StageKind::collapse:
    case StageKind::expand:
      return collapse_actions(stage, rank, a);
    case StageKind::merge:
      return merge_actions(stage, rank, a);
    case StageKind::inverse_merge:
      return inverse_merge_actions(stage, rank, a);
    case StageKind::dissemination:
      return dissemination_actions(stage, w, a);
    case StageKind::eliminate:
    case StageKind::settle:
    case StageKind::resolve:
      return elimination_actions(stage, rank, a);
  }
}

StageActions Schedule::actions(int stage, int rank) const {
  StageActions a;
  actions(stage, rank, a);
  return a;
}

void Schedule::factor_actions(int stage, std::int64_t w, StageActions& a) const {
  if (w < 0) return;
  const Place& place = places_[static_cast<std::size_t>(stage)];
  const std::int64_t base = stages_[static_cast<std::size_t>(stage)].base, m = place.product;
  const std::int64_t block = w / (m * base) * (m * base), inside = w - block, mine = inside / m;
  for (std::int64_t i = 1; i < base; ++i) a.send.push_back(real_of(place, block + (inside + i * m) % (m * base)));
  a.own += static_cast<std::size_t>(mine);
  for (std::int64_t j = 0; j < base; ++j)
    if (j != mine) a.receive.push_back(real_of(place, block + inside % m + j * m));
}

void Schedule::collapse_actions(int stage, int rank, StageActions& a) const {
  const Stage& s = stages_[static_cast<std::size_t>(stage)];
  if (rank >= s.threshold) return;
  const int first = rank / s.base * s.base, last = first + s.base - 1;
  const bool expand = s.kind == StageKind::expand;
  if (rank != last) {
    (expand ? a.receive : a.send).push_back(last);
    a.replace = expand;
    return;
  }
  std::vector<int>& others = expand ? a.send : a.receive;
  for (int r = first; r < last; ++r) others.push_back(r);
  a.own = a.receive.size();
}

void Schedule::merge_actions(int stage, int rank, StageActions& a) const {
  const Stage& s = stages_[static_cast<std::size_t>(stage)];
  const Place& place = places_[static_cast<std::size_t>(stage)];
  const std::int64_t group_size = place.product * s.base;
  const std::int64_t w = virtual_of(place, rank);
  if (w < 0) {
    for (std::int64_t i = 0; i < group_size; ++i)
      a.send.push_back(real_of(place, rank % s.groups * group_size + i));
    return;
  }
  // Remainder ranks come before all others.
  const std::int64_t group = w / group_size;
  if (group < s.groups)
    for (std::int64_t q = group; q < s.remainder; q += s.groups) a.receive.push_back(static_cast<int>(q));
  a.own = a.receive.size();
  factor_actions(stage, w, a);
}

void Schedule::inverse_merge_actions(int stage, int rank, StageActions& a) const {
  const Stage& s = stages_[static_cast<std::size_t>(stage)];
  const Place& place = places_[static_cast<std::size_t>(stage)];
  const std::int64_t w = virtual_of(place, rank);
  if (w < 0) {
    for (std::int64_t v = rank % s.groups; v < place.active; v += s.groups) a.receive.push_back(real_of(place, v));
    a.replace = true;
    return;
  }
  factor_actions(stage, w, a);
  for (std::int64_t q = w % s.groups; q < s.remainder; q += s.groups) a.send.push_back(static_cast<int>(q));
}

void Schedule::dissemination_actions(int stage, std::int64_t w, StageActions& a) const {
  if (w < 0) return;
  const Place& place = places_[static_cast<std::size_t>(stage)];
  const std::int64_t peers = most_sends(stage), n = place.active, distance = place.product % n;
  for (std::int64_t i = 1; i <= peers; ++i) a.send.push_back(real_of(place, (w + i * distance) % n));
  for (std::int64_t i = peers; i >= 1; --i) a.receive.push_back(real_of(place, (w + n - i * distance % n) % n));
  a.own = a.receive.size();
}

void Schedule::elimination_actions(int stage, int rank, StageActions& a) const {
  const Stage& s = stages_[static_cast<std::size_t>(stage)];
  const Seat seat = seat_of(s.threshold, s.remainder, rank);
  const auto send = [&](int from, int to) {
    if (seat.index == from) a.send.push_back(seat.first + to);
    if (seat.index != to) return;
    a.receive.push_back(seat.first + from);
    if (from < to) ++a.own;
  };
  if (s.kind == StageKind::eliminate) {
    send(0, 1);
    if (seat.size != 4) send(1, 0);
    if (seat.size == 3) send(2, 1);
    if (seat.size == 4) send(2, 3);
  } else if (s.kind == StageKind::settle) {
    if (seat.size == 3) send(0, 2);
    if (seat.size == 4) send(1, 3), send(3, 1);
  } else {
    if (seat.size > 2) send(1, 0);
    if (seat.size == 4) send(3, 2);
    a.replace = !a.receive.empty();
    a.own = 0;
  }
}

}  // namespace isohalo
