#pragma once
/// All schedules of a number of ranks, and the best one by the cost model.

#include <functional>
#include <optional>
#include <vector>

#include "framework/schedule/schedule.hpp"
#include "framework/schedule/schedule_cost.hpp"

namespace isohalo {

/// Which schedules to enumerate. 0: no limit.
struct EnumerationLimits {
  int most_sends = 0;  ///< messages of a rank in a stage
  int most_stages = 0;
};

/// Calls `visit` with every allreduce of `ranks` ranks within the limits, in a fixed order: all factorisations in
/// all orders; after every collapse (all B and T) those of the ranks left; with every number of merged ranks those
/// of the others, for all numbers of groups that differ. Disseminations and eliminations are left out. Stops early
/// when `visit` returns false.
void for_each_schedule(int ranks, const EnumerationLimits& limits,
                       const std::function<bool(const std::vector<Stage>&)>& visit);

/// What a planned schedule is for.
struct PlanOptions {
  MessageCosts costs = {};
  double bytes = 8;
  bool for_sets = false;    ///< disseminations may be chosen
  bool rank_order = false;  ///< the operation does not commute: contributions must be combined in rank order
};

struct Plan {
  Schedule schedule;
  double model_ns;
};

/// The schedule that the cost model finds best; of those that cost the same a plain factorisation before a merge
/// before a collapse before a dissemination, then one of fewest stages, larger bases first. For `ranks` up to
/// kExactPlanRanks all factorisations, collapses and merges are considered (by dynamic programming over divisors);
/// beyond, only those that merge or collapse away at most kFewRanks. Local; the same on every rank.
Plan plan_by_model(int ranks, const PlanOptions& options);

/// At most `count` schedules in the order of their cost by the model, for a choice by timing: of all up to
/// kEnumeratedRanks ranks, beyond of one per way to factorise, collapse or merge.
std::vector<Plan> plan_candidates(int ranks, const PlanOptions& options, std::size_t count);

inline constexpr int kExactPlanRanks = 1 << 20;
inline constexpr int kFewRanks = 4096;
inline constexpr int kEnumeratedRanks = 64;

/// Recursive doubling as MPICH does it: a collapse to the next lower power of two, stages of base 2, an expand.
Schedule recursive_doubling(int ranks);

/// Rabenseifner and Traeff's eliminations (non-overlapping): between two powers of two, groups of four by 2-1 and
/// of three by 3-2 elimination, then stages of base 2; at a power of two recursive doubling.
Schedule elimination(int ranks);

/// k-way dissemination in ceil(log_k p) stages, for sets.
Schedule dissemination(int ranks, int base);

}  // namespace isohalo
