#include "framework/reduce/reduction_options.hpp"

#include "datatypes/error.hpp"
#include "framework/reduce/schedule.hpp"

namespace isohalo {

void refuse_schedule(const ReductionOptions& options) {
  if (options.schedule == "auto") return;
  if (options.method == ReductionMethod::binary_tree)
    throw UsageError("the reduction method binary_tree has no schedule, but \"" + options.schedule +
                     "\" is given: use \"auto\" or the method tree");
  if (options.method != ReductionMethod::exact) return;
  for (const Stage& s : parse_stages(options.schedule))
    if (s.kind == StageKind::dissemination)
      throw UsageError("schedule " + options.schedule + ": its stage " + to_text(s) +
                       " may bring a contribution twice, which the reduction method exact would count: use stages "
                       "without d, or the method tree");
}

ReductionMethod reduction_method(std::string_view word) {
  for (const ReductionMethod m : {ReductionMethod::tree, ReductionMethod::binary_tree, ReductionMethod::exact})
    if (word == to_text(m)) return m;
  throw UsageError("no reduction method \"" + std::string(word) + "\": use tree, binary_tree or exact");
}

std::string to_text(ReductionMethod method) {
  switch (method) {
    case ReductionMethod::tree:
      return "tree";
    case ReductionMethod::binary_tree:
      return "binary_tree";
    case ReductionMethod::exact:
      return "exact";
  }
  return "";
}

std::string method_name(ReductionMethod method) {
  return method == ReductionMethod::exact ? "exact" : "tree";
}

}  // namespace isohalo
