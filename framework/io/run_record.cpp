#include "framework/io/run_record.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "datatypes/error.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

// Anybody may have written the file: numbers of other kinds, and lists of lists of lists, are no record of ours.
std::int64_t whole_number(const nlohmann::json& value) {
  const auto n = value.is_number_integer() ? value.get<std::int64_t>() : -1;
  if (n < 0) throw UsageError("no whole number");
  return n;
}

std::vector<std::int64_t> whole_numbers(const nlohmann::json& list) {
  std::vector<std::int64_t> numbers;
  for (const auto& value : list) numbers.push_back(whole_number(value));
  return numbers;
}

}  // namespace

std::optional<RunRecord> read_run_record(const fs::path& checkpoint) try {
  constexpr std::uintmax_t kMost = 1 << 24;
  const fs::path file = fs::canonical(checkpoint).replace_extension(".json");
  if (fs::file_size(file) > kMost) return std::nullopt;
  std::ifstream in(file);
  const auto j = nlohmann::json::parse(in);
  RunRecord record;
  record.config = j.value("config", record.config);
  for (const auto& dimension : j.value("cuts", nlohmann::json::array()))
    record.cuts.push_back(whole_numbers(dimension));
  for (const auto& [key, value] : j.items())
    if (value.is_string())
      record.facts[key] = value.get<std::string>();
    else if (key == "ranks" || key == "halo_depth")
      record.facts[key] = std::to_string(whole_number(value));
    else if (key == "process_grid")
      record.facts[key] = fmt::format("[{}]", fmt::join(whole_numbers(value), ","));
  return record;
} catch (const std::exception&) {
  return std::nullopt;
}

std::string beside_cuts(const RunRecord& record, const std::vector<std::int64_t>& index) {
  std::string text;
  for (std::size_t j = 0; j < std::min(record.cuts.size(), index.size()); ++j)
    for (std::size_t c = 1; c + 1 < record.cuts[j].size(); ++c)
      if (const std::int64_t cut = record.cuts[j][c]; index[j] == cut || index[j] == cut - 1)
        text += fmt::format("{}dimension {} between {} and {}", text.empty() ? "" : ", ", j, cut - 1, cut);
  return text;
}

}  // namespace isohalo
