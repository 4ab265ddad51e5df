#include "framework/schedule/schedule_check.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "datatypes/error.hpp"
#include "datatypes/mix.hpp"
#include "framework/schedule/rank_set.hpp"
#include "framework/schedule/schedule_run.hpp"

namespace isohalo {

namespace {

std::string schedule_name(std::span<const Stage> stages, int ranks) {
  std::string text = to_text(stages);
  if (text.size() > 100) text = text.substr(0, 100) + "...";
  return "schedule \"" + text + "\" for " + std::to_string(ranks) + (ranks == 1 ? " rank: " : " ranks: ");
}

[[noreturn]] void refuse(std::span<const Stage> stages, int ranks, int stage, const std::string& what) {
  throw UsageError(schedule_name(stages, ranks) + "stage " + std::to_string(stage + 1) + " (" +
                   to_text(stages[static_cast<std::size_t>(stage)]) + ") " + what);
}

/// Stages that renumber the ranks; at most one of them.
bool opens(StageKind kind) {
  return kind == StageKind::collapse || kind == StageKind::merge || kind == StageKind::eliminate;
}

/// The kind that must come before a stage of this kind, or the kind itself.
StageKind opening_kind(StageKind kind) {
  switch (kind) {
    case StageKind::expand:
      return StageKind::collapse;
    case StageKind::inverse_merge:
      return StageKind::merge;
    case StageKind::settle:
      return StageKind::eliminate;
    case StageKind::resolve:
      return StageKind::settle;
    default:
      return kind;
  }
}

/// Its number of ranks is T (and B), or R, or Q and T; the form of a stage that another can match.
std::string form(StageKind kind, const Stage& s) {
  Stage like = s;
  like.kind = kind;
  return kind == StageKind::merge ? "m" + std::to_string(s.remainder) + "gGaB" : to_text(like);
}

/// Checks that a stage undoes or continues one before it that nothing else has.
void check_opening(std::span<const Stage> stages, int ranks, int stage) {
  const Stage& s = stages[static_cast<std::size_t>(stage)];
  const StageKind wanted = opening_kind(s.kind);
  if (wanted == s.kind) return;
  const Stage* opening = nullptr;
  for (int e = stage; !opening && e-- > 0;) {
    const Stage& earlier = stages[static_cast<std::size_t>(e)];
    if (earlier.kind == s.kind) break;
    if (earlier.kind == wanted) opening = &earlier;
  }
  const std::string needed = form(wanted, s);
  if (!opening) refuse(stages, ranks, stage, "has no " + needed + " of its own before it: put it there");
  const bool merge = wanted == StageKind::merge;
  if (opening->remainder != s.remainder ||
      (!merge && (opening->threshold != s.threshold || opening->base != s.base)))
    refuse(stages, ranks, stage, "does not fit " + to_text(*opening) + ": that must be " + needed);
}

}  // namespace

void detail::check_numbers(std::span<const Stage> stages, int ranks, int stage) {
  const Stage& s = stages[static_cast<std::size_t>(stage)];
  using std::to_string;
  const auto wrong = [&](const std::string& what) { refuse(stages, ranks, stage, what); };
  if (s.base < 2) wrong("has base " + to_string(s.base) + "; the least is 2");
  const bool collapses = s.kind == StageKind::collapse || s.kind == StageKind::expand;
  const bool merges = s.kind == StageKind::merge || s.kind == StageKind::inverse_merge;
  if (collapses && s.threshold > ranks)
    wrong("has threshold " + to_string(s.threshold) + "; the most is the number of ranks, " + to_string(ranks));
  if (collapses && (s.threshold < 0 || s.threshold % s.base != 0))
    wrong("has threshold " + to_string(s.threshold) + ", no multiple of its base " + to_string(s.base) + ": take " +
          to_string(s.threshold - s.threshold % s.base));
  if (merges && s.groups < 1) wrong("has " + to_string(s.groups) + " groups; the least is 1");
  if (merges && (s.remainder < 0 || s.remainder >= ranks))
    wrong("has " + to_string(s.remainder) + " remainder ranks; the most is " + to_string(ranks - 1));
  if (opens(s.kind) &&
      std::any_of(stages.begin(), stages.begin() + stage, [](const Stage& e) { return opens(e.kind); }))
    wrong("is a second collapse, merge or elimination; a schedule has at most one of them");
  if (s.kind == StageKind::eliminate) {
    const std::int64_t rest = ranks - 4 * std::int64_t{s.threshold} - 3 * std::int64_t{s.remainder};
    if (s.threshold < 0 || s.remainder < 0 || rest < 0 || rest % 2 != 0)
      wrong("takes " + to_string(s.threshold) + " fours and " + to_string(s.remainder) +
            " threes of the ranks and leaves " + to_string(rest) + "; it must leave pairs");
  }
  check_opening(stages, ranks, stage);
}

void detail::check_groups(std::span<const Stage> stages, int ranks, int stage, std::int64_t product,
                          std::int64_t active) {
  const Stage& s = stages[static_cast<std::size_t>(stage)];
  using std::to_string;
  const auto wrong = [&](const std::string& what) { refuse(stages, ranks, stage, what); };
  if (s.kind == StageKind::dissemination) {
    if (product > (std::int64_t{1} << 62) / s.base)
      wrong("makes the product of the bases pass 2^62: leave it out, all is known long before");
    return;
  }
  if (s.kind != StageKind::factor && s.kind != StageKind::merge && s.kind != StageKind::inverse_merge) return;
  if (product > active || active % (product * s.base) != 0)
    wrong("joins groups of " +
          (product > active ? to_string(product) + " x " + to_string(s.base) : to_string(product * s.base)) +
          " of " + to_string(active) +
          " ranks, which they do not divide: choose bases whose product is the number "
          "of ranks left, or fit it by a collapse (c, e) or a merge (m, n)");
  const std::int64_t used = std::min(s.groups, s.remainder), group_size = product * s.base;
  if (s.kind == StageKind::merge && used > active / group_size)
    wrong("gives its remainder ranks to " + to_string(used) + " groups; there are " +
          to_string(active / group_size));
  if (s.kind == StageKind::inverse_merge && used > active)
    wrong("serves its remainder ranks from " + to_string(used) + " classes of members; there are " +
          to_string(active));
}

namespace {

/// The first rank that does not end with the contributions of all, or -1.
int first_wrong_rank(const Schedule& schedule) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  const auto first_unlike = [](const auto& values, const auto& expected) {
    const auto at = std::find_if(values.begin(), values.end(), [&](const auto& v) { return !(v == expected); });
    return at == values.end() ? -1 : static_cast<int>(at - values.begin());
  };
  if (schedule.for_sets_only()) {
    std::vector<RankSet> sets;
    for (std::size_t r = 0; r < ranks; ++r) sets.emplace_back(static_cast<int>(r), static_cast<int>(r) + 1);
    run_in_process(schedule, sets, [](RankSet a, const RankSet& b) {
      a.insert(b);
      return a;
    });
    return first_unlike(sets, RankSet(0, schedule.ranks()));
  }
  std::vector<std::uint64_t> values;
  for (std::size_t r = 0; r < ranks; ++r) values.push_back(mix64((r + 1) * kGolden));
  const std::uint64_t all = std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  run_in_process(schedule, values, std::plus<>());
  return first_unlike(values, all);
}

}  // namespace

void check_allreduce(const Schedule& schedule) {
  const std::string name = schedule_name(schedule.stages(), schedule.ranks());
  if (schedule.messages() > kMostScheduleMessages)
    throw UsageError(name + "it has " + std::to_string(schedule.messages()) + " messages, more than the limit of " +
                     std::to_string(kMostScheduleMessages) + ": take smaller bases");
  const int wrong = first_wrong_rank(schedule);
  if (wrong < 0) return;
  const RankSet held = contributions(schedule, schedule.size(), wrong);
  std::int64_t known = 0;
  for (const auto& [first, last] : held.intervals()) known += last - first;
  const auto& [first, last] = held.intervals().front();
  const std::string found = known == schedule.ranks()
                                ? "holds a contribution more than once"
                                : "lacks the contribution of rank " + std::to_string(first > 0 ? 0 : last) +
                                      " (it has " + std::to_string(known) + " of " +
                                      std::to_string(schedule.ranks()) + ")";
  throw UsageError(name + "after the last stage rank " + std::to_string(wrong) + " " + found +
                   "; isohalo schedule --ranks " + std::to_string(schedule.ranks()) +
                   " --best gives one that works");
}

bool keeps_rank_order(const Schedule& schedule) {
  if (schedule.for_sets_only()) return false;
  struct Interval {
    int first, last;
  };
  std::vector<Interval> held;
  held.reserve(static_cast<std::size_t>(schedule.ranks()));
  for (int r = 0; r < schedule.ranks(); ++r) held.push_back({r, r + 1});
  constexpr Interval broken{-1, -1};
  run_in_process(schedule, held, [&](const Interval& a, const Interval& b) {
    return a.first >= 0 && b.first >= 0 && a.last == b.first ? Interval{a.first, b.last} : broken;
  });
  return std::all_of(held.begin(), held.end(),
                     [&](const Interval& i) { return i.first == 0 && i.last == schedule.ranks(); });
}

}  // namespace isohalo
