#include "framework/io/run_record.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace isohalo {

namespace fs = std::filesystem;

std::optional<RunRecord> read_run_record(const fs::path& checkpoint) {
  std::error_code error;
  fs::path file = fs::canonical(checkpoint, error);
  if (error) return std::nullopt;
  file.replace_extension(".json");
  if (fs::file_size(file, error) > (1 << 24) || error) return std::nullopt;
  std::ifstream in(file);
  const auto j = nlohmann::json::parse(in, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  RunRecord record;
  for (const auto& [key, value] : j.items()) {
    if (key == "config" && value.is_object()) {
      for (const auto& [name, text] : value.items())
        if (text.is_string()) record.config[name] = text.get<std::string>();
    } else if (key == "cuts" && value.is_array()) {
      for (const auto& list : value) {
        record.cuts.emplace_back();
        if (!list.is_array()) return std::nullopt;
        for (const auto& cut : list) {
          if (!cut.is_number_integer()) return std::nullopt;
          record.cuts.back().push_back(cut.get<std::int64_t>());
        }
      }
    } else if (value.is_string()) {
      record.facts[key] = value.get<std::string>();
    } else if (key == "ranks" || key == "process_grid" || key == "halo_depth") {
      record.facts[key] = value.dump();
    }
  }
  return record;
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
