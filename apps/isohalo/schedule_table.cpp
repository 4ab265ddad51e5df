#include "apps/isohalo/schedule_table.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "datatypes/error.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

constexpr const char* kVersionKey = "isohalo_schedule_table";

auto key(const ScheduleTableEntry& e) {
  return std::tie(e.machine, e.ranks, e.bytes);
}

ScheduleTableEntry entry_from(const nlohmann::json& json) {
  if (!json.is_object()) throw UsageError("it is no object");
  for (const auto& [name, value] : json.items())
    if (name != "machine" && name != "ranks" && name != "bytes" && name != "schedule" && name != "time_ns" &&
        name != "method")
      throw UsageError("unknown key \"" + name + "\"");
  for (const char* name : {"ranks", "bytes"})
    if (!json.at(name).is_number_integer()) throw UsageError(std::string(name) + " is no integer");
  ScheduleTableEntry e;
  e.machine = json.at("machine").get<std::string>();
  const auto ranks = json.at("ranks").get<std::int64_t>();
  if (ranks < 1 || ranks > 0x7fffffff)
    throw UsageError("ranks = " + std::to_string(ranks) + " is out of range: 1 .. 2147483647");
  e.ranks = static_cast<int>(ranks);
  e.bytes = json.at("bytes").get<std::int64_t>();
  e.schedule = json.at("schedule").get<std::string>();
  e.time_ns = json.at("time_ns").get<double>();
  e.method = json.at("method").get<std::string>();
  return e;
}

}  // namespace

ScheduleTable ScheduleTable::read(const std::string& file) {
  ScheduleTable table;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return table;
  if (std::filesystem::is_directory(file, ignored))
    throw UsageError("schedule table " + file + ": it is a directory; name a file");
  std::ifstream in(file);
  const std::string name = "schedule table " + file + ": ";
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(in);
    if (json.at(kVersionKey) != 1)
      throw UsageError(name + "version " + json.at(kVersionKey).dump() + "; this program reads version 1");
    if (!json.at("entries").is_array()) throw UsageError(name + "entries is no list");
  } catch (const nlohmann::json::exception& e) {
    throw UsageError(name + "it is no schedule table (" + e.what() + "): remove it, or name another file");
  }
  for (std::size_t i = 0; i < json["entries"].size(); ++i) {
    const std::string which = name + "entry " + std::to_string(i + 1) + ": ";
    try {
      table.put(entry_from(json["entries"][i]));
    } catch (const nlohmann::json::exception& e) {
      throw UsageError(which + e.what());
    } catch (const UsageError& e) {
      throw UsageError(which + e.what());
    }
  }
  return table;
}

void ScheduleTable::write(const std::string& file) const {
  nlohmann::ordered_json json{{kVersionKey, 1}, {"entries", nlohmann::ordered_json::array()}};
  for (const auto& e : entries_)
    json["entries"].push_back({{"machine", e.machine},
                               {"ranks", e.ranks},
                               {"bytes", e.bytes},
                               {"schedule", e.schedule},
                               {"time_ns", e.time_ns},
                               {"method", e.method}});
  try {
    write_whole(file, json.dump(1) + '\n');
  } catch (const RunError& e) {
    throw RunError("schedule table: " + std::string(e.what()));
  }
}

std::optional<Schedule> ScheduleTable::find(const std::string& machine, int ranks, std::int64_t bytes) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), std::tie(machine, ranks, bytes),
                                   [](const auto& e, const auto& wanted) { return key(e) < wanted; });
  if (at == entries_.end() || at->machine != machine || at->ranks != ranks) return std::nullopt;
  return Schedule::parse(at->schedule, at->ranks);
}

void ScheduleTable::put(const ScheduleTableEntry& entry) {
  try {
    nlohmann::json(entry.machine).dump();
  } catch (const nlohmann::json::type_error&) {
    throw UsageError("the name of the machine is not UTF-8, and a table of schedules is: give another name");
  }
  Schedule::parse(entry.schedule, entry.ranks);
  if (entry.bytes < 1) throw UsageError("bytes = " + std::to_string(entry.bytes) + "; the least is 1");
  if (!std::isfinite(entry.time_ns) || entry.time_ns < 0)
    throw UsageError("time_ns = " + std::to_string(entry.time_ns) + ": it must be a time");
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry,
                                   [](const auto& a, const auto& b) { return key(a) < key(b); });
  if (at != entries_.end() && key(*at) == key(entry))
    *at = entry;
  else
    entries_.insert(at, entry);
}

}  // namespace isohalo
