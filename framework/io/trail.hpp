#pragma once
/// Digest trails: the lines `step NAME=digest .. residual=number` of digests.txt.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace isohalo {

/// Step -> (field or "residual" -> text).
using Trail = std::map<std::int64_t, std::map<std::string, std::string>>;

/// The step of a line of a trail without its end; nothing for any other text.
std::optional<std::int64_t> trail_step(const std::string& line);

/// Reads a trail, on the calling rank alone. Throws UsageError naming file and line for anything else.
Trail read_trail(const std::filesystem::path& file);

/// Two trails, on the steps that both have.
struct TrailComparison {
  std::int64_t common = 0, only_a = 0, only_b = 0;  ///< steps in both, in one alone
  std::optional<std::int64_t> first;                ///< the first common step that differs
  std::optional<std::int64_t> last_equal;           ///< the last common step before it
  std::map<std::string, std::string> different;     ///< there: field -> "a against b"
  bool same() const { return !first; }
};

/// Throws UsageError when no step is in both.
TrailComparison compare_trails(const Trail& a, const Trail& b);

}  // namespace isohalo
