#include "framework/reduce/reduction_options.hpp"

#include "datatypes/error.hpp"

namespace isohalo {

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
