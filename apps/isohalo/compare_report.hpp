#pragma once
/// Comparisons for people and for programs.

#include <string>

#include "framework/io/compare.hpp"
#include "framework/io/digest_log.hpp"

namespace isohalo {

/// What differs, a table of the fields that do, and the verdict as the last line.
std::string comparison_text(const Comparison& c);
/// Everything, as one JSON object. Numbers that JSON lacks (NaN, infinity) are strings.
std::string comparison_json(const Comparison& c, const std::string& a, const std::string& b);

std::string digest_logs_text(const DigestLogComparison& c);
std::string digest_logs_json(const DigestLogComparison& c, const std::string& a, const std::string& b);

}  // namespace isohalo
