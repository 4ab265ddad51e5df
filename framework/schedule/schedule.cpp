#include "framework/schedule/schedule.hpp"

#include <algorithm>
#include <numeric>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_cost.hpp"

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

/// How many of 0 .. count-1 are `residue` modulo `modulus`.
std::int64_t count_of_class(std::int64_t count, std::int64_t residue, std::int64_t modulus) {
  return residue < count ? (count - residue - 1) / modulus + 1 : 0;
}

/// Where a rank stands in an elimination: `index` in the group of `size` ranks that begins at `first`.
struct Seat {
  int group, first, size, index;
};

Seat seat_of(int fours, int threes, int rank) {
  const int after_fours = 4 * fours, after_threes = after_fours + 3 * threes;
  int size = 2, start = after_threes, groups_before = fours + threes;
  if (rank < after_fours)
    size = 4, start = groups_before = 0;
  else if (rank < after_threes)
    size = 3, start = after_fours, groups_before = fours;
  const int inside = (rank - start) / size;
  return {groups_before + inside, start + inside * size, size, (rank - start) % size};
}

/// The two of a group that stay.
constexpr int kStays[5][2] = {{}, {}, {0, 1}, {1, 2}, {1, 3}};

}  // namespace

Schedule::Schedule(std::vector<Stage> stages, int ranks) : stages_(std::move(stages)), ranks_(ranks) {
  if (ranks < 1 || ranks > kMostScheduleRanks)
    throw UsageError("a schedule for " + std::to_string(ranks) + " ranks: there must be 1 to " +
                     std::to_string(kMostScheduleRanks));
  number_ranks();
  check_allreduce(*this);
}

Schedule Schedule::parse(std::string_view text, int ranks) {
  return Schedule(parse_stages(text), ranks);
}

bool Schedule::for_sets_only() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& s) { return s.kind == StageKind::dissemination; });
}

void Schedule::number_ranks() {
  Numbering numbers;
  numbers.active = ranks_;
  for (int s = 0; s < size(); ++s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    detail::check_numbers(stages_, ranks_, s);
    if (stage.kind == StageKind::collapse) {
      numbers.collapsed = stage.threshold;
      numbers.collapse_base = stage.base;
      numbers.active = ranks_ - std::int64_t{stage.threshold / stage.base} * (stage.base - 1);
    } else if (stage.kind == StageKind::merge) {
      numbers.remainder = stage.remainder;
      numbers.active = ranks_ - stage.remainder;
    } else if (stage.kind == StageKind::eliminate) {
      numbers.fours = stage.threshold;
      numbers.threes = stage.remainder;
      numbers.active = ranks_ - 2 * std::int64_t{numbers.fours} - numbers.threes;
    }
    numberings_.push_back(numbers);
    detail::check_groups(stages_, ranks_, s, numbers.product, numbers.active);
    numbers.product *= growth(stage);
  }
}

std::int64_t Schedule::virtual_of(const Numbering& p, int rank) const {
  if (p.fours >= 0) {
    const Seat seat = seat_of(p.fours, p.threes, rank);
    const int member = seat.index == kStays[seat.size][1];
    return seat.index == kStays[seat.size][member] ? 2 * seat.group + member : -1;
  }
  if (rank < p.collapsed) return rank % p.collapse_base == p.collapse_base - 1 ? rank / p.collapse_base : -1;
  if (p.collapsed > 0) return rank - std::int64_t{p.collapsed / p.collapse_base} * (p.collapse_base - 1);
  return rank < p.remainder ? -1 : rank - p.remainder;
}

int Schedule::real_of(const Numbering& p, std::int64_t w) const {
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
  const std::int64_t w = virtual_of(numberings_[static_cast<std::size_t>(stage)], rank);
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
  const Numbering& numbers = numberings_[static_cast<std::size_t>(stage)];
  const std::int64_t base = stages_[static_cast<std::size_t>(stage)].base, m = numbers.product;
  const std::int64_t block = w / (m * base) * (m * base), inside = w - block, mine = inside / m;
  for (std::int64_t i = 1; i < base; ++i) a.send.push_back(real_of(numbers, block + (inside + i * m) % (m * base)));
  a.own += static_cast<std::size_t>(mine);
  for (std::int64_t j = 0; j < base; ++j)
    if (j != mine) a.receive.push_back(real_of(numbers, block + inside % m + j * m));
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
  const Numbering& numbers = numberings_[static_cast<std::size_t>(stage)];
  const std::int64_t group_size = numbers.product * s.base;
  const std::int64_t w = virtual_of(numbers, rank);
  if (w < 0) {
    for (std::int64_t i = 0; i < group_size; ++i)
      a.send.push_back(real_of(numbers, rank % s.groups * group_size + i));
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
  const Numbering& numbers = numberings_[static_cast<std::size_t>(stage)];
  const std::int64_t w = virtual_of(numbers, rank);
  if (w < 0) {
    for (std::int64_t v = rank % s.groups; v < numbers.active; v += s.groups)
      a.receive.push_back(real_of(numbers, v));
    a.replace = true;
    return;
  }
  factor_actions(stage, w, a);
  for (std::int64_t q = w % s.groups; q < s.remainder; q += s.groups) a.send.push_back(static_cast<int>(q));
}

void Schedule::dissemination_actions(int stage, std::int64_t w, StageActions& a) const {
  if (w < 0) return;
  const Numbering& numbers = numberings_[static_cast<std::size_t>(stage)];
  const std::int64_t peers = most_sends(stage), n = numbers.active, distance = numbers.product % n;
  for (std::int64_t i = 1; i <= peers; ++i) a.send.push_back(real_of(numbers, (w + i * distance) % n));
  for (std::int64_t i = peers; i >= 1; --i) a.receive.push_back(real_of(numbers, (w + n - i * distance % n) % n));
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

std::int64_t Schedule::messages(int stage) const {
  const Stage& s = stages_[static_cast<std::size_t>(stage)];
  const Numbering& numbers = numberings_[static_cast<std::size_t>(stage)];
  const std::int64_t exchanged = numbers.active * (s.base - 1);
  switch (s.kind) {
    case StageKind::factor:
      return exchanged;
    case StageKind::collapse:
    case StageKind::expand:
      return std::int64_t{s.threshold / s.base} * (s.base - 1);
    case StageKind::merge:
      return exchanged + s.remainder * numbers.product * s.base;
    case StageKind::inverse_merge: {
      std::int64_t sum = exchanged;
      for (std::int64_t c = 0; c < std::min(s.groups, s.remainder); ++c)
        sum += count_of_class(s.remainder, c, s.groups) * count_of_class(numbers.active, c, s.groups);
      return sum;
    }
    case StageKind::dissemination:
      return numbers.active * most_sends(stage);
    case StageKind::eliminate:
      return numbers.active + numbers.threes;
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
  const Numbering& numbers = numberings_[static_cast<std::size_t>(stage)];
  switch (s.kind) {
    case StageKind::factor:
      return s.base - 1;
    case StageKind::collapse:
      return s.threshold > 0 ? 1 : 0;
    case StageKind::expand:
      return s.threshold > 0 ? s.base - 1 : 0;
    case StageKind::merge:
      return s.remainder > 0 ? numbers.product * s.base : s.base - 1;
    case StageKind::inverse_merge:
      return s.base - 1 + count_of_class(s.remainder, 0, s.groups);
    case StageKind::dissemination: {
      // Multiples of the distance repeat, beginning with the rank itself, after this many.
      const std::int64_t distinct = numbers.active / std::gcd(numbers.product, numbers.active);
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

double model_ns(const Schedule& schedule, const MessageCosts& costs, double bytes) {
  double sum = 0;
  for (int s = 0; s < schedule.size(); ++s)
    sum += costs.stage_ns(static_cast<double>(schedule.most_sends(s)), bytes);
  return sum;
}

}  // namespace isohalo
