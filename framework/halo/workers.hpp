#pragma once
/// Threads that help with copies of an exchange. (Here without Kokkos; host_threads.hpp gives Kokkos' threads.)

#include <algorithm>
#include <cstdint>

namespace isohalo {

/// Threads that copy together; without any, the caller copies alone. What they copy has the same bits.
struct Workers {
  int count = 1;
  /// Calls piece(context, k) for k = 0 .. n-1, each once, perhaps from several threads, n <= count; returns when
  /// all are done.
  void (*run)(int n, void (*piece)(void* context, int k), void* context) = nullptr;
  std::int64_t least_bytes = 64 << 10;  ///< for each: what takes longer than waking a thread

  /// f(first, last) for ranges that make up 0 .. n-1, which are copies of so many bytes: one range for each worker,
  /// or fewer where there is little to copy.
  template <class F>
  void share(std::int64_t n, std::int64_t bytes, const F& f) const {
    const std::int64_t parts = std::min({std::int64_t{count}, n, bytes / least_bytes});
    if (!run || parts < 2) return f(std::int64_t{0}, n);
    struct Shared {
      const F& f;
      std::int64_t n, parts;
    } shared{f, n, parts};
    run(
        static_cast<int>(parts),
        [](void* context, int k) {
          const auto& s = *static_cast<const Shared*>(context);
          s.f(s.n * k / s.parts, s.n * (k + 1) / s.parts);
        },
        &shared);
  }
};

}  // namespace isohalo
