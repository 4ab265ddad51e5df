#pragma once
/// How benchmarks tell what they have measured: the figures of a case are a row of JSON, and tables are made of
/// such rows.

#include <mpi.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "datatypes/error.hpp"

namespace isohalo {

using Json = nlohmann::ordered_json;

/// What every report begins with.
Json report_of(const std::string& benchmark);
void print_json(const Json& report);

struct Column {
  std::string title;
  int width;              ///< below 0: left-aligned
  std::string key;        ///< of the figure in a row; "a/b" is b of its a
  std::string form = "";  ///< of a number, such as ".3f"
  std::string zero = "";  ///< what stands for 0, if anything does
};

/// Columns; and what is said behind rows in which `key` is there and is `when`.
struct Table {
  struct Remark {
    std::string key;
    bool when;
    std::string text;
  };
  std::vector<Column> columns;
  std::vector<Remark> remarks = {};

  std::string titles() const;
  /// Blanks stand for figures that the row lacks.
  std::string line(const Json& row) const;
};

/// The cases that --case names, all of them when it names none.
class CaseChoice {
 public:
  explicit CaseChoice(const std::vector<std::string>& wanted) : wanted_(wanted) {}
  /// To be asked for every case that there is.
  bool wants(const std::string& name);
  /// Throws UsageError unless a case was wanted; `bench` is the command, for the message.
  void require_one(const std::string& bench) const;

 private:
  std::vector<std::string> wanted_, names_;
  bool found_ = false;
};

/// Prints the report with its "cases" on rank 0, as JSON or as the heading and a table. Different when `right`, a
/// key of cases, is false in one of them. Local.
ExitCode report_cases(MPI_Comm comm, bool json, const Json& report, const std::string& heading, const Table& table,
                      const std::string& right);

}  // namespace isohalo
