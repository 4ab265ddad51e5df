#pragma once
/// Cache lines: fetched before they are needed.

#include <cstdint>

namespace isohalo::detail {

// Inlined by force, as all that does nothing but call them: GCC takes a function that only fetches for one without
// effect, and leaves out its calls.
[[gnu::always_inline]] inline void fetch_to_read(const void* p) {
  __builtin_prefetch(p, 0, 2);
}
[[gnu::always_inline]] inline void fetch_to_write(const void* p) {
  __builtin_prefetch(p, 1, 2);
}

/// Elements from `p` on to where a cache line begins.
template <class T>
std::int64_t to_next_line(const T* p) {
  constexpr std::uintptr_t line = 64;
  return static_cast<std::int64_t>((line - reinterpret_cast<std::uintptr_t>(p) % line) % line / sizeof(T));
}

}  // namespace isohalo::detail
