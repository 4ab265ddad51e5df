#pragma once
/// Counters behind operator new and behind MPI's sends, for tests that assert how many of them happen.

#include <atomic>

namespace isohalo::test {
extern std::atomic<long> allocations;
extern std::atomic<long> sends;       ///< MPI_Isend_c, through the profiling interface
extern std::atomic<int> largest_tag;  ///< of these
}  // namespace isohalo::test
