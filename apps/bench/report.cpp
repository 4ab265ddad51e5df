#include "apps/bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

std::string text_of(const Json& figure, const Column& c) {
  if (!c.zero.empty() && figure == 0) return c.zero;
  if (figure.is_string()) return figure.get<std::string>();
  if (figure.is_number_float()) return fmt::format(fmt::runtime("{:" + c.form + "}"), figure.get<double>());
  return figure.dump();
}

std::string in_column(const Column& c, const std::string& text) {
  return c.width < 0 ? fmt::format("{:<{}}", text, -c.width) : fmt::format("{:>{}}", text, c.width);
}

}  // namespace

Json report_of(const std::string& benchmark) {
  return {{"benchmark", benchmark}, {"machine", machine_text()}};
}

void print_json(const Json& report) {
  fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string Table::titles() const {
  std::string all;
  for (const Column& c : columns) all += (all.empty() ? "" : " ") + in_column(c, c.title);
  return all;
}

std::string Table::line(const Json& row) const {
  std::string all;
  for (const Column& c : columns) {
    const Json::json_pointer place("/" + c.key);
    all += (all.empty() ? "" : " ") + in_column(c, row.contains(place) ? text_of(row[place], c) : "");
  }
  for (const Remark& r : remarks)
    if (row.contains(r.key) && row[r.key] == r.when) all += r.text;
  return all;
}

bool CaseChoice::wants(const std::string& name) {
  names_.push_back(name);
  const bool wanted = wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
  found_ = found_ || wanted;
  return wanted;
}

void CaseChoice::require_one(const std::string& bench) const {
  if (!found_) throw UsageError(fmt::format("{}: no such case; there are {}", bench, fmt::join(names_, ", ")));
}

ExitCode report_cases(MPI_Comm comm, bool json, const Json& report, const std::string& heading, const Table& table,
                      const std::string& right) {
  const Json& cases = report["cases"];
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0 && json) print_json(report);
  if (rank == 0 && !json) {
    fmt::print("{}\n{}\n", heading, table.titles());
    for (const Json& row : cases) fmt::print("{}\n", table.line(row));
  }
  const bool fine =
      std::all_of(cases.begin(), cases.end(), [&](const Json& row) { return row.value(right, true); });
  return fine ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
