#include "framework/reduce/reduction_options.hpp"

#include "datatypes/error.hpp"
#include "framework/schedule/schedule.hpp"

namespace isohalo {

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

void append_arguments(std::vector<Argument>& list, const ReductionOptions& options) {
  list.push_back({"method", to_text(options.method)});
  list.push_back({"schedule", options.schedule});
  list.push_back({"resolve", options.resolve ? "true" : "false"});
  list.push_back({"on_node", options.on_node ? "true" : "false"});
  list.push_back({"root", std::to_string(options.root)});
  list.push_back({"planning", detail::to_text(options.planning)});
  list.push_back({"emulation", detail::to_text(options.emulate)});
}

bool is_exact(ReductionMethod method) {
  return method == ReductionMethod::exact_over_tiles || method == ReductionMethod::exact_over_terms;
}

ReductionMethod reduction_method(std::string_view word) {
  for (const ReductionMethod m : {ReductionMethod::tree, ReductionMethod::binary_tree,
                                  ReductionMethod::exact_over_tiles, ReductionMethod::exact_over_terms})
    if (word == to_text(m)) return m;
  throw UsageError("no reduction method \"" + std::string(word) +
                   "\": use tree, binary_tree, exact (over tiles) or exact_over_terms");
}

std::string to_text(ReductionMethod method) {
  switch (method) {
    case ReductionMethod::tree:
      return "tree";
    case ReductionMethod::binary_tree:
      return "binary_tree";
    case ReductionMethod::exact_over_tiles:
      return "exact";
    case ReductionMethod::exact_over_terms:
      return "exact_over_terms";
  }
  return "";
}

std::string method_name(ReductionMethod method) {
  return method == ReductionMethod::binary_tree ? "tree" : to_text(method);
}

}  // namespace isohalo
