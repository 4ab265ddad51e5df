#include "framework/schedule/schedule_search.hpp"

#include <bit>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule_check.hpp"

namespace isohalo {

namespace {

Stage factor(int base) {
  return {.kind = StageKind::factor, .base = base};
}

/// All divisors of n but 1, ascending; in the time of the root of n.
std::vector<int> divisors(int n) {
  std::vector<int> small, large;
  for (int d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    if (d > 1) small.push_back(d);
    if (d < n / d) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// Enumerates; every method returns false once the visitor wants no more.
class Enumerator {
 public:
  Enumerator(int ranks, const EnumerationLimits& limits,
             const std::function<bool(const std::vector<Stage>&)>& visit)
      : ranks_(ranks), limits_(limits), visit_(visit) {}

  bool run() {
    return factorisations(ranks_, [this] { return visit_(stages_); }) && collapses() && merges();
  }

 private:
  bool sends(std::int64_t n) const { return limits_.most_sends == 0 || n <= limits_.most_sends; }
  bool room(std::size_t n) const {
    return limits_.most_stages == 0 || stages_.size() + n <= static_cast<std::size_t>(limits_.most_stages);
  }

  /// Appends every ordered factorisation of n in turn and calls `done`.
  template <class F>
  bool factorisations(int n, const F& done) {
    if (n == 1) return done();
    if (!room(1)) return true;
    for (int base : divisors(n)) {
      if (!sends(base - 1)) break;
      stages_.push_back(factor(base));
      const bool more = factorisations(n / base, done);
      stages_.pop_back();
      if (!more) return false;
    }
    return true;
  }

  bool collapses() {
    if (!room(2)) return true;
    for (int base = 2; base <= ranks_ && sends(base - 1); ++base)
      for (int threshold = base; threshold <= ranks_; threshold += base) {
        stages_.push_back({.kind = StageKind::collapse, .base = base, .threshold = threshold});
        const bool more = factorisations(ranks_ - threshold / base * (base - 1), [&] {
          if (!room(1)) return true;
          stages_.push_back({.kind = StageKind::expand, .base = base, .threshold = threshold});
          const bool go_on = visit_(stages_);
          stages_.pop_back();
          return go_on;
        });
        stages_.pop_back();
        if (!more) return false;
      }
    return true;
  }

  bool merges() {
    for (int remainder = 1; remainder + 4 <= ranks_; ++remainder)
      if (!factorisations(ranks_ - remainder, [&] { return merge(remainder); })) return false;
    return true;
  }

  /// Turns the first and the last of the factor stages at hand into a merge and its inverse, in all ways that
  /// differ.
  bool merge(int remainder) {
    if (stages_.size() < 2) return true;
    const int members = ranks_ - remainder;
    const Stage first = stages_.front(), last = stages_.back();
    const int classes = members / last.base;
    bool go_on = true;
    if (sends(first.base) && sends(last.base - 1 + (remainder + classes - 1) / classes))
      for (int groups = 1; go_on && groups <= std::min(remainder, members / first.base); ++groups) {
        stages_.front() = {.kind = StageKind::merge, .base = first.base, .remainder = remainder, .groups = groups};
        stages_.back() = {
            .kind = StageKind::inverse_merge, .base = last.base, .remainder = remainder, .groups = classes};
        go_on = visit_(stages_);
      }
    stages_.front() = first;
    stages_.back() = last;
    return go_on;
  }

  int ranks_;
  EnumerationLimits limits_;
  const std::function<bool(const std::vector<Stage>&)>& visit_;
  std::vector<Stage> stages_;
};

}  // namespace

void for_each_schedule(int ranks, const EnumerationLimits& limits,
                       const std::function<bool(const std::vector<Stage>&)>& visit) {
  Enumerator(ranks, limits, visit).run();
}

Schedule recursive_doubling(int ranks) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(ranks, 1))));
  const int threshold = 2 * (ranks - power);
  std::vector<Stage> stages;
  if (threshold > 0) stages.push_back({.kind = StageKind::collapse, .base = 2, .threshold = threshold});
  for (int n = power; n > 1; n /= 2) stages.push_back(factor(2));
  if (threshold > 0) stages.push_back({.kind = StageKind::expand, .base = 2, .threshold = threshold});
  return Schedule(stages, ranks);
}

Schedule elimination(int ranks) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(ranks, 1))));
  if (power == ranks || ranks < 1) return recursive_doubling(ranks);
  // Half as many groups as survivors; each holds two ranks and one or two of those beyond the power of two.
  const int groups = power / 2, beyond = ranks - power;
  const int fours = std::max(0, beyond - groups), threes = beyond - 2 * fours;
  const auto stage = [&](StageKind kind) { return Stage{.kind = kind, .threshold = fours, .remainder = threes}; };
  std::vector<Stage> stages{stage(StageKind::eliminate), stage(StageKind::settle)};
  for (int n = groups; n > 1; n /= 2) stages.push_back(factor(2));
  stages.push_back(stage(StageKind::resolve));
  return Schedule(stages, ranks);
}

Schedule dissemination(int ranks, int base) {
  if (base < 2) throw UsageError("dissemination with base " + std::to_string(base) + "; the least is 2");
  std::vector<Stage> stages;
  for (std::int64_t known = 1; known < ranks; known *= base) {
    const std::int64_t needed = (ranks + known - 1) / known;
    stages.push_back(
        {.kind = StageKind::dissemination, .base = static_cast<int>(std::min<std::int64_t>(base, needed))});
  }
  return Schedule(stages, ranks);
}

}  // namespace isohalo
