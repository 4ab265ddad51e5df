#pragma once
/// How a global reduction is carried out. Only the exact methods change what comes out.

#include <string>
#include <string_view>

#include "framework/reduce/schedule_choice.hpp"

namespace isohalo {

enum class ReductionMethod {
  tree,         ///< the reduction tree, partial-result sets through a schedule
  binary_tree,  ///< the same tree by binary tree reduction (Stelz 2022): the same bits
  /// Sums of float64 only. The tile values, each of which is a rounded sum of up to some hundred terms, are added
  /// exactly and their sum is rounded once: as good as its tile values, not the exact sum of the terms. The word
  /// for it in inputs and files is "exact".
  exact_over_tiles,
  /// Sums of float64 by ArrayReducer only: the exact sum of all terms, rounded once. Tiles play no part.
  exact_over_terms,
};

struct ReductionOptions {
  ReductionMethod method = ReductionMethod::tree;
  /// Stages of the allreduce in encoded form (see `parse_stages`), or "auto": what suits the ranks.
  std::string schedule = "auto";
  /// Frontier values first go to the owner of their highest ancestor that lies within its 3^d ranks: worth a stage
  /// when frontiers are large (docs/reductions.md). For `tree`.
  bool resolve = false;
  /// Ranks of a compute node use shared memory when schedule is "auto".
  bool on_node = true;
  /// The rank that gets the result, -1: all. What only other ranks would need is neither sent nor combined,
  /// but for exact sums by a schedule.
  int root = -1;
  /// How schedule = "auto" is chosen, where there are messages; where planning asks, exact sums take a schedule
  /// too.
  Planning planning = {};

  bool operator==(const ReductionOptions&) const = default;
};

/// Exact over tiles or over terms: sums of limbs, without a tree between ranks.
bool is_exact(ReductionMethod method);

/// Throws UsageError when the method cannot use the schedule: binary_tree has none, exact sums count what comes
/// twice.
void refuse_schedule(const ReductionOptions& options);
/// The same, and for a root that is none of `ranks` or a schedule that does not fit them.
void check(const ReductionOptions& options, int ranks);

/// "tree", "binary_tree", "exact" (over tiles), "exact_over_terms". Throws UsageError for another word.
ReductionMethod reduction_method(std::string_view word);
std::string to_text(ReductionMethod method);
/// What decides the bits, as recorded with results: "tree", "exact" or "exact_over_terms".
std::string method_name(ReductionMethod method);

}  // namespace isohalo
