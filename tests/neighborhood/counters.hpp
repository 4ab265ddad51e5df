#pragma once
/// Counters behind operator new and behind MPI's sends, for tests that assert how many of them happen.

#include <atomic>
#include <cstdint>

#include "framework/neighborhood/local_schedule.hpp"

namespace isohalo::test {
extern std::atomic<long> allocations;
extern std::atomic<long> sends;       ///< MPI_Isend_c, through the profiling interface
extern std::atomic<int> largest_tag;  ///< of these

/// What a rank sends to others, one message per peer and stage.
inline std::int64_t messages_of(const LocalSchedule& local) {
  std::int64_t n = 0;
  for (const LocalStage& stage : local.stages)
    for (const LocalMessage& m : stage.send) n += m.peer != local.rank;
  return n;
}
}  // namespace isohalo::test
