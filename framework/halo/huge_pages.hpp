#pragma once
/// Large pages for large fields: a sweep touches several planes at once, each on pages of its own.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

namespace isohalo {

/// Asks the system to back the memory with large pages where it offers them on request (Linux, "madvise" mode). A
/// hint: small arrays and refusals are left as they are. Local.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t page = 4096, large = std::uintptr_t{2} << 20;
  if (bytes < 4 * large) return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

/// Whether the same request is heard for anonymous files, such as SharedMemory: where it is not ("never", most
/// systems' default), large arrays in them are slower to sweep. Local.
inline bool shared_memory_has_huge_pages() {
  static const bool has = [] {
    std::ifstream in("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    std::string line;
    return std::getline(in, line) && line.find("[never]") == std::string::npos &&
           line.find("[deny]") == std::string::npos;
  }();
  return has;
}

}  // namespace isohalo
