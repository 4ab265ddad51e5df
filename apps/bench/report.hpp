#pragma once
/// How benchmarks tell what they have measured: all of it is one object of JSON, printed as such or as text.

#include <mpi.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "datatypes/error.hpp"

namespace isohalo {

using Json = nlohmann::ordered_json;

/// What every report begins with.
Json report_of(const std::string& benchmark);

/// Prints the report on rank 0, as JSON or as text: what is single on a line of its own, each list of alike objects
/// as a table, other parts under their names. Different unless all was `right`. Local.
ExitCode print_report(MPI_Comm comm, bool json, const Json& report, bool right);

/// Is this key true in all rows?
bool all_true(const Json& rows, const std::string& key);

/// The cases that --case names, all of them when it names none.
class CaseChoice {
 public:
  explicit CaseChoice(const std::vector<std::string>& wanted) : wanted_(wanted) {}
  /// To be asked for every case that there is.
  bool wants(const std::string& name);
  /// Throws UsageError for a wanted case that was not asked for; `bench` is the command, for the message.
  void require_known(const std::string& bench) const;

 private:
  std::vector<std::string> wanted_, names_;
};

}  // namespace isohalo
