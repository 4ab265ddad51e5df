#pragma once
/// Digest logs: the lines `step NAME=digest .. residual=number` of digests.txt.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace isohalo {

/// Step -> (field or "residual" -> text).
using DigestLog = std::map<std::int64_t, std::map<std::string, std::string>>;

/// Reads a digest log, on the calling rank alone. Throws UsageError naming file and line for anything else.
DigestLog read_digest_log(const std::filesystem::path& file);

/// Two digest logs, on the steps that both have.
struct DigestLogComparison {
  std::int64_t common = 0, only_a = 0, only_b = 0;  ///< steps in both, in one alone
  std::optional<std::int64_t> first;                ///< the first common step that differs
  std::optional<std::int64_t> last_equal;           ///< the last common step before it
  std::map<std::string, std::string> different;     ///< there: field -> "a against b"
  bool same() const { return !first; }
};

/// Throws UsageError when no step is in both.
DigestLogComparison compare_digest_logs(const DigestLog& a, const DigestLog& b);

/// The log that a run writes: sorted, no step twice. On one rank; throws RunError, also for a file that is a
/// link.
class DigestLogWriter {
 public:
  /// Goes on with the lines that the file holds, without any that is damaged or not whole; or begins it anew.
  DigestLogWriter(std::filesystem::path file, bool go_on);
  /// File, line and reason of the first line that is left out because it is damaged, and how many there are; empty:
  /// none. A last line without its end, which an interrupted run leaves, is none, unless there is no other.
  const std::string& damage() const { return damage_; }
  /// Adds a line, which ends with its newline; in place of the one that the step has. Returns the line that said
  /// something else of it, if there was one.
  std::optional<std::string> add(std::int64_t step, const std::string& line);

 private:
  void write() const;
  void read(const std::string& text);
  std::filesystem::path file_;
  std::string damage_;
  std::map<std::int64_t, std::string> lines_;  ///< of later steps than the last one written: all there are, or none
};

}  // namespace isohalo
