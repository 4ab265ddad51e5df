#pragma once
/// A file of schedules that were found best, by machine, number of ranks and size.
///
/// JSON: {"isohalo_schedule_table": 1, "entries": [{"machine": "..", "ranks": 7, "bytes": 8,
///        "schedule": "m1g2a3,n1g3a2", "time_ns": 2047.2, "method": "timing"}, ..]}

#include <optional>
#include <string>
#include <vector>

#include "framework/schedule/schedule.hpp"

namespace isohalo {

struct ScheduleTableEntry {
  std::string machine;
  int ranks = 1;
  std::int64_t bytes = 8;  ///< size of a message for which the schedule was chosen
  std::string schedule;    ///< encoded form
  double time_ns = 0;      ///< of the allreduce, as measured or by the model
  std::string method;      ///< "timing" or "model"
};

class ScheduleTable {
 public:
  /// Reads a table; a file that is not there is an empty table. Throws UsageError, naming file and entry, when it
  /// is no table, has a key that it should not have, or has a schedule that does not fit its ranks. Local.
  static ScheduleTable read(const std::string& file);
  /// Writes it under another name and then renames it, so that no reader sees half a table. Throws RunError. Local:
  /// of several ranks one must do it.
  void write(const std::string& file) const;

  /// The schedule for the smallest size of at least `bytes` that the table has for this machine and number of
  /// ranks; none if all are smaller: the model must decide then.
  std::optional<Schedule> find(const std::string& machine, int ranks, std::int64_t bytes) const;
  /// Adds an entry, in place of one with the same key. Throws UsageError unless the schedule fits.
  void put(const ScheduleTableEntry& entry);
  /// Sorted by machine, ranks and bytes.
  const std::vector<ScheduleTableEntry>& entries() const { return entries_; }

 private:
  std::vector<ScheduleTableEntry> entries_;
};

}  // namespace isohalo
