#pragma once
/// Copies to memory that is not used again soon.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace isohalo::detail {

/// So many bytes, 16, 32 or 64, past the caches, in as few stores as the processor has for them. `to` is a multiple
/// of that.
template <std::size_t Bytes = 64>
[[gnu::always_inline]] inline void stream(void* to, const void* from) {
#if defined(__AVX512F__)
  if constexpr (Bytes == 64) return _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#endif
  [[maybe_unused]] char* const t = static_cast<char*>(to);
  [[maybe_unused]] const char* const f = static_cast<const char*>(from);
#if defined(__AVX__)
  if constexpr (Bytes >= 32) {
    for (std::size_t k = 0; k < Bytes; k += 32)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(t + k),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(f + k)));
    return;
  }
#endif
#if defined(__SSE2__)
  for (std::size_t k = 0; k < Bytes; k += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(t + k), _mm_loadu_si128(reinterpret_cast<const __m128i*>(f + k)));
#else
  std::memcpy(to, from, Bytes);
#endif
}

/// Copies `bytes` bytes. Where the processor can, the destination does not pass through the cache: its lines are
/// not read before they are written, which is a third of the traffic of a copy between large arrays. `Ahead`: the
/// source is fetched so many bytes ahead, unless that is 0.
template <std::size_t Ahead = 4096>
void streaming_copy(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__)
  auto* t = static_cast<char*>(to);
  const auto* f = static_cast<const char*>(from);
  const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(t) % 64) % 64;
  if (bytes >= head + 64) {
    if (head > 0) std::memcpy(t, f, head);
    t += head, f += head, bytes -= head;
    for (; bytes >= 64; t += 64, f += 64, bytes -= 64) {
      if constexpr (Ahead > 0) _mm_prefetch(f + Ahead, _MM_HINT_T0);
      stream(t, f);
    }
  }
  if (bytes > 0) std::memcpy(t, f, bytes);
#else
  std::memcpy(to, from, bytes);
#endif
}

/// Makes streamed bytes visible to other threads in the usual order; once after the last copy.
inline void streaming_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace isohalo::detail
