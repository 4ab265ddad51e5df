/// The planner: the cheapest schedule by the cost model, by dynamic programming over divisors.

#include <algorithm>
#include <map>
#include <unordered_map>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

namespace {

/// The least cost of a factorisation of n, and its largest base.
class FactorCosts {
 public:
  FactorCosts(int tabled, const MessageCosts& costs, double bytes)
      : costs_(costs), bytes_(bytes), best_(static_cast<std::size_t>(tabled) + 1), base_(best_.size()) {
    for (std::size_t n = 2; n < best_.size(); ++n)
      best_[n] = stage(static_cast<std::int64_t>(n)), base_[n] = static_cast<int>(n);
    // In ascending order n / base is final when n is improved from it.
    for (std::size_t n = 2; n < best_.size(); ++n)
      for (std::size_t base = 2; base <= n && n * base < best_.size(); ++base) improve(n, base);
  }

  double of(int n) {
    if (static_cast<std::size_t>(n) < best_.size()) return best_[static_cast<std::size_t>(n)];
    return beyond(n).first;
  }

  /// The bases, largest first.
  std::vector<int> bases(int n) {
    std::vector<int> list;
    while (n > 1) {
      const int base =
          static_cast<std::size_t>(n) < best_.size() ? base_[static_cast<std::size_t>(n)] : beyond(n).second;
      list.push_back(base);
      n /= base;
    }
    std::sort(list.rbegin(), list.rend());
    return list;
  }

 private:
  double stage(std::int64_t base) const { return costs_.stage_ns(static_cast<double>(base - 1), bytes_); }

  void improve(std::size_t n, std::size_t base) {
    const double cost = best_[n] + stage(static_cast<std::int64_t>(base));
    if (cost < best_[n * base] * (1 - 1e-12)) best_[n * base] = cost, base_[n * base] = static_cast<int>(base);
  }

  const std::pair<double, int>& beyond(int n) {
    const auto [at, added] = memo_.try_emplace(n, stage(n), n);
    if (!added) return at->second;
    std::pair<double, int> found = at->second;
    const auto try_base = [&](int base) {
      const double cost = of(n / base) + stage(base);
      if (cost < found.first * (1 - 1e-12)) found = {cost, base};
    };
    for (int base = 2; base <= n / base; ++base)
      if (n % base == 0) try_base(base), try_base(n / base);
    return memo_[n] = found;
  }

  MessageCosts costs_;
  double bytes_;
  std::vector<double> best_;
  std::vector<int> base_;
  std::map<int, std::pair<double, int>> memo_;  // stable references
};

/// Ways to arrange an allreduce, in the order of preference at equal cost.
enum class Frame { plain, merge, collapse, dissemination };

struct Candidate {
  double cost;
  Frame frame = Frame::plain;
  int first = 0, last = 0;  ///< merge: bases of the outer stages; collapse: base
  int regular = 0;          ///< ranks that take part in the factor stages

  friend bool operator<(const Candidate& a, const Candidate& b) {
    const double gap = 1e-12 * std::max(a.cost, b.cost);
    if (a.cost < b.cost - gap) return true;
    if (b.cost < a.cost - gap) return false;
    if (a.frame != b.frame) return a.frame < b.frame;
    if (a.regular != b.regular) return a.regular > b.regular;
    return std::pair(a.first, a.last) > std::pair(b.first, b.last);
  }
};

class Planner {
 public:
  Planner(int ranks, const PlanOptions& options, std::size_t keep)
      : ranks_(ranks),
        options_(options),
        keep_(keep),
        factors_(std::min(ranks, kExactPlanRanks), options.costs, options.bytes) {
    least_regular_ = ranks <= kExactPlanRanks ? 1 : ranks - kFewRanks;
    add({.cost = factors_.of(ranks), .frame = Frame::plain, .regular = ranks});
    collapses();
    merges();
    if (options.for_sets) add({.cost = spread(ranks).first, .frame = Frame::dissemination, .regular = 0});
  }

  std::vector<Plan> plans() {
    std::vector<Plan> list;
    for (const Candidate& c : best_) {
      Schedule schedule(stages(c), ranks_);
      const double cost = model_ns(schedule, options_.costs, options_.bytes);
      list.push_back({std::move(schedule), cost});
    }
    return list;
  }

 private:
  double stage(double sends) const { return options_.costs.stage_ns(sends, options_.bytes); }
  bool hopeless(double cost) const { return best_.size() == keep_ && cost > best_.back().cost * (1 + 1e-12); }

  void add(const Candidate& c) {
    if (hopeless(c.cost)) return;
    best_.insert(std::upper_bound(best_.begin(), best_.end(), c), c);
    if (best_.size() > keep_) best_.pop_back();
  }

  void collapses() {
    for (int base = 2; base <= ranks_ && !hopeless(stage(1) + stage(base - 1)); ++base)
      for (int groups = 1; groups <= ranks_ / base; ++groups) {
        const int regular = ranks_ - groups * (base - 1);
        if (regular < least_regular_) break;
        add({.cost = stage(1) + stage(base - 1) + factors_.of(regular),
             .frame = Frame::collapse,
             .first = base,
             .regular = regular});
      }
  }

  void merges() {
    for (int regular = ranks_ - 1; regular >= std::max(4, least_regular_); --regular)
      for (int last = 2; last <= regular / 2; ++last) {
        const std::int64_t classes = regular / last, remainder = ranks_ - regular;
        if (hopeless(stage(2) + stage(last))) break;                      // the least that a further base can cost
        const std::int64_t served = (remainder + classes - 1) / classes;  // by one member, at most
        const double end = stage(static_cast<double>(last - 1 + served));
        if (regular % last || hopeless(stage(2) + end)) continue;
        for (int first = 2; first <= classes && !hopeless(stage(first) + end); ++first)
          if (classes % first == 0)
            add({.cost = stage(first) + end + factors_.of(static_cast<int>(classes) / first),
                 .frame = Frame::merge,
                 .first = first,
                 .last = last,
                 .regular = regular});
      }
  }

  /// The least cost of a dissemination to n ranks, and its first base.
  std::pair<double, int> spread(int n) {
    if (n == 1) return {0, 0};
    if (const auto known = spread_.find(n); known != spread_.end()) return known->second;
    std::pair<double, int> found{stage(n - 1), n};
    for (int base = 2; base < n && stage(base - 1) < found.first; ++base) {
      const double cost = stage(base - 1) + spread((n + base - 1) / base).first;
      if (cost <= found.first * (1 - 1e-12)) found = {cost, base};
    }
    return spread_[n] = found;
  }

  std::vector<Stage> stages(const Candidate& c) {
    std::vector<Stage> list;
    if (c.frame == Frame::dissemination) {
      for (int n = ranks_; n > 1; n = (n + list.back().base - 1) / list.back().base)
        list.push_back({.kind = StageKind::dissemination, .base = spread(n).second});
      return list;
    }
    const int remainder = ranks_ - c.regular;
    const int inner = c.frame == Frame::merge ? c.regular / c.first / c.last : c.regular;
    for (int base : factors_.bases(inner)) list.push_back({.kind = StageKind::factor, .base = base});
    if (c.frame == Frame::collapse) {
      const int threshold = remainder / (c.first - 1) * c.first;
      list.insert(list.begin(), {.kind = StageKind::collapse, .base = c.first, .threshold = threshold});
      list.push_back({.kind = StageKind::expand, .base = c.first, .threshold = threshold});
    } else if (c.frame == Frame::merge) {
      const int groups = options_.rank_order ? 1 : std::min(remainder, c.regular / c.first);
      list.insert(list.begin(),
                  {.kind = StageKind::merge, .base = c.first, .remainder = remainder, .groups = groups});
      list.push_back(
          {.kind = StageKind::inverse_merge, .base = c.last, .remainder = remainder, .groups = c.regular / c.last});
    }
    return list;
  }

  int ranks_;
  PlanOptions options_;
  std::size_t keep_;
  FactorCosts factors_;
  int least_regular_ = 1;
  std::vector<Candidate> best_;  ///< sorted
  std::unordered_map<int, std::pair<double, int>> spread_;
};

void check_options(int ranks, const PlanOptions& o) {
  if (ranks < 1 || ranks > kMostScheduleRanks)
    throw UsageError("a plan for " + std::to_string(ranks) + " ranks: there must be 1 to " +
                     std::to_string(kMostScheduleRanks));
  for (const auto& [value, name] : {std::pair{o.costs.latency_ns, "latency"},
                                    {o.costs.pipeline_ns, "pipeline latency"},
                                    {o.costs.per_byte_ns, "time per byte"},
                                    {o.bytes, "size in bytes"}})
    if (!(value >= 0 && value <= 1e15))
      throw UsageError("a plan with a " + std::string(name) + " of " + std::to_string(value) +
                       ": it must be 0 to 1e15");
  if (o.for_sets && o.rank_order)
    throw UsageError("a plan for sets does not keep the order of ranks: ask for one of the two");
}

}  // namespace

Plan plan_by_model(int ranks, const PlanOptions& options) {
  check_options(ranks, options);
  return Planner(ranks, options, 1).plans().front();
}

std::vector<Plan> plan_candidates(int ranks, const PlanOptions& options, std::size_t count) {
  check_options(ranks, options);
  if (ranks > kEnumeratedRanks) return Planner(ranks, options, std::max<std::size_t>(count, 1)).plans();
  std::vector<Plan> all = Planner(ranks, options, 1).plans();
  for_each_schedule(ranks, {}, [&](const std::vector<Stage>& stages) {
    const Schedule schedule(stages, ranks);
    if (!(schedule == all.front().schedule) && (!options.rank_order || keeps_rank_order(schedule)))
      all.push_back({schedule, model_ns(schedule, options.costs, options.bytes)});
    return true;
  });
  std::stable_sort(all.begin(), all.end(), [](const Plan& a, const Plan& b) { return a.model_ns < b.model_ns; });
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size())), all.end());
  return all;
}

}  // namespace isohalo
