#pragma once
/// What the command line of `isohalo compare` asks for.

#include <string>
#include <vector>

#include "framework/io/compare.hpp"

namespace isohalo {

struct CompareRequest {
  std::string a, b;  ///< two checkpoints, or two digest logs (*.txt)
  /// "value" for all fields or "NAME=value" for one.
  std::vector<std::string> abs, rel, ulp;
  std::vector<std::string> ignore;  ///< names of metadata
  bool read_data = false, json = false;
};

/// Throws UsageError, naming the option and its text, for one that is no number >= 0. Local.
CompareOptions compare_options(const CompareRequest& request);

}  // namespace isohalo
