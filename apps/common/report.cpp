#include "apps/common/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "datatypes/printable.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

std::string text_of(const Json& figure) {
  if (figure.empty() || figure == "") return "-";
  if (figure.is_string()) return printable(figure.get<std::string>());
  if (!figure.is_number_float()) return figure.dump();
  const double x = figure.get<double>();
  if (!std::isfinite(x)) return "-";
  return std::abs(x) < 1e3 || std::abs(x) >= 1e9 ? fmt::format("{:.4g}", x) : fmt::format("{:.0f}", x);
}

bool is_list_of_objects(const Json& j) {
  return j.is_array() && !j.empty() &&
         std::all_of(j.begin(), j.end(), [](const Json& part) { return part.is_object(); });
}
/// May it be a row of a table?
bool is_row(const Json& j) {
  return std::none_of(j.begin(), j.end(), is_list_of_objects);
}

/// The figures of a row; "a/b" is b of its a.
void add_figures(const std::string& above, const Json& j, Json& figures) {
  for (const auto& [key, part] : j.items())
    if (part.is_object())
      add_figures(above + key + "/", part, figures);
    else
      figures[above + key] = text_of(part);
}

/// A column under its key, a word below the other.
std::vector<std::string> column(const Json& rows, const std::string& key) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, end = 0; end != key.npos; at = end + 1) {
    end = key.find_first_of("_/", at);
    lines.push_back(key.substr(at, end == key.npos ? end : end - at));
  }
  for (const Json& row : rows) lines.push_back(row.value(key, ""));
  return lines;
}

void print_table(const Json& list) {
  Json rows = Json::array();
  std::vector<std::string> keys;
  for (const Json& row : list) {
    add_figures("", row, rows.emplace_back(Json::object()));
    for (const auto& [key, figure] : rows.back().items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  std::vector<std::string> lines;
  for (const std::string& key : keys) {
    std::vector<std::string> cells = column(rows, key);
    if (lines.size() < cells.size())  // below which all rows begin
      lines.insert(lines.begin(), cells.size() - lines.size(),
                   std::string(lines.empty() ? 0 : lines[0].size(), ' '));
    cells.insert(cells.begin(), lines.size() - cells.size(), "");
    std::size_t width = 0;
    for (const std::string& c : cells) width = std::max(width, c.size());
    for (std::size_t k = 0; k < lines.size(); ++k) lines[k] += fmt::format("  {:>{}}", cells[k], width);
  }
  fmt::print("{}\n", fmt::join(lines, "\n"));
}

bool is_single(const Json& j) {
  return !j.is_object() && !is_list_of_objects(j);
}

/// What is single first; then each part under its name, those of a list under what they begin with.
void print_text(const Json& j) {
  if (is_list_of_objects(j) && std::all_of(j.begin(), j.end(), is_row)) return print_table(j);
  for (const auto& [key, part] : j.items())
    if (is_single(part)) fmt::print("{}: {}\n", key, text_of(part));
  for (const auto& [key, part] : j.items()) {
    if (is_single(part)) continue;
    fmt::print("\n{}\n", j.is_array() && !part.empty() && is_single(part.front()) ? text_of(part.front()) : key);
    print_text(part);
  }
}

}  // namespace

Json report_of(const std::string& benchmark) {
  return {{"benchmark", benchmark}, {"machine", machine_text()}};
}

std::string json_text(const Json& report) {
  return report.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

ExitCode print_report(MPI_Comm comm, bool json, const Json& report, bool right) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0 && json) fmt::print("{}", json_text(report));
  if (rank == 0 && !json) print_text(report);
  return right ? ExitCode::fine : ExitCode::different;
}

bool all_true(const Json& rows, const std::string& key) {
  return std::all_of(rows.begin(), rows.end(), [&](const Json& row) { return row[key].get<bool>(); });
}

void Cases::add(const std::string& name, const std::function<void()>& measure) {
  all_.emplace_back(name, measure);
}

bool Cases::wants(const std::string& name) const {
  return wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
}

void Cases::measure(const std::string& bench) const {
  std::vector<std::string> names;
  for (const auto& [name, of_case] : all_)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (const std::string& name : wanted_)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UsageError(fmt::format("{}: no case \"{}\"; there are {}", bench, name, fmt::join(names, ", ")));
  for (const auto& [name, of_case] : all_)
    if (wants(name)) of_case();
}

}  // namespace isohalo
