#pragma once
/// Large pages for large fields: a sweep touches several planes at once, each on pages of its own.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

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

}  // namespace isohalo
