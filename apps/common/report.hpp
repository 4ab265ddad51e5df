#pragma once
/// How commands and benchmarks tell what they have found: all of it is one object of JSON, printed as such or as
/// text.

#include <mpi.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"

namespace isohalo {

using Json = nlohmann::ordered_json;

/// What the report of a benchmark begins with.
Json report_of(const std::string& benchmark);

/// The lines of it; bytes that are no text become U+FFFD.
std::string json_text(const Json& report);

/// Prints the report on rank 0, as JSON or as text: what is single on a line of its own, each list of alike objects
/// as a table, other parts under their names. Different unless all was `right`. Local.
ExitCode print_report(MPI_Comm comm, bool json, const Json& report, bool right);

/// Is this key true in all rows?
bool all_true(const Json& rows, const std::string& key);

/// The cases of a benchmark, of which those are measured that --case names; all of them when it names none.
class Cases {
 public:
  explicit Cases(const std::vector<std::string>& wanted) : wanted_(wanted) {}
  /// Another one that there is, under a name that others may have as well.
  void add(const std::string& name, const std::function<void()>& measure);
  bool wants(const std::string& name) const;
  /// Measures what is wanted, in the order in which it was added. Throws UsageError, and measures nothing, where a
  /// wanted case is unknown; `bench` is the command, for the message.
  void measure(const std::string& bench) const;

 private:
  std::vector<std::string> wanted_;
  std::vector<std::pair<std::string, std::function<void()>>> all_;
};

}  // namespace isohalo
