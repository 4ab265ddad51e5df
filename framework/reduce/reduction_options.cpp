#include "framework/reduce/reduction_options.hpp"

#include <algorithm>
#include <array>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule.hpp"

namespace isohalo {

namespace {

/// By ReductionMethod.
constexpr std::array<std::string_view, 4> kMethods{"tree", "binary_tree", "exact", "exact_over_terms"};

}  // namespace

void refuse_schedule(const ReductionOptions& options) {
  if (options.schedule == "auto") return;
  if (options.method == ReductionMethod::binary_tree)
    throw UsageError("the reduction method binary_tree has no schedule, but \"" + options.schedule +
                     "\" is given: use \"auto\" or the method tree");
  if (!is_exact(options.method)) return;
  for (const Stage& s : parse_stages(options.schedule))
    if (s.kind == StageKind::dissemination)
      throw UsageError("schedule " + options.schedule + ": its stage " + to_text(s) +
                       " may bring a contribution twice, which the reduction method " + to_text(options.method) +
                       " would count: use stages without d, or the method tree");
}

void check(const ReductionOptions& options, int ranks) {
  if (options.root < -1 || options.root >= ranks)
    throw UsageError("the result of a reduction is for rank " + std::to_string(options.root) + " of " +
                     std::to_string(ranks) + ": give a rank that there is, or -1 for all");
  refuse_schedule(options);
  if (options.schedule != "auto") Schedule::parse(options.schedule, ranks);
}

bool is_exact(ReductionMethod method) {
  return method == ReductionMethod::exact_over_tiles || method == ReductionMethod::exact_over_terms;
}

ReductionMethod reduction_method(std::string_view word) {
  const auto found = std::ranges::find(kMethods, word);
  if (found == kMethods.end())
    throw UsageError("no reduction method \"" + std::string(word) +
                     "\": use tree, binary_tree, exact (over tiles) or exact_over_terms");
  return static_cast<ReductionMethod>(found - kMethods.begin());
}

std::string to_text(ReductionMethod method) {
  return std::string(kMethods[static_cast<std::size_t>(method)]);
}

std::string method_name(ReductionMethod method) {
  return method == ReductionMethod::binary_tree ? "tree" : to_text(method);
}

}  // namespace isohalo
