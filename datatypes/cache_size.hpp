#pragma once
/// How much a processor core's own cache holds.

#include <unistd.h>

#include <cstdint>

namespace isohalo {

/// Bytes of second-level cache of one processor core; 1 MiB where the system does not say. Local.
inline std::int64_t second_level_cache() {
  static const std::int64_t bytes = [] {  // virtual machines take long to say it
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (const long said = sysconf(_SC_LEVEL2_CACHE_SIZE); said > 0) return std::int64_t{said};
#endif
    return std::int64_t{1} << 20;
  }();
  return bytes;
}

}  // namespace isohalo
