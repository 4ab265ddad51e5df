#pragma once
/// Vectors of the processor, by the extension that GCC and Clang share: operators work lane by lane, each lane
/// rounded as one number is.

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSSE3__) && !defined(__CUDACC__)
#define ISOHALO_HAS_SHUFFLES
#include <immintrin.h>
#endif

/// Of a lambda that handles vectors: they stay in registers only where all is one function.
#define ISOHALO_INLINED __attribute__((always_inline))

namespace isohalo::detail {

/// Bytes of the widest vector that this translation unit may use. What depends on it takes it as a template
/// argument, so that units for different processors can be linked together.
#if defined(__AVX512BW__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T, int Bytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(Bytes)));
  static constexpr int kLanes = Bytes / static_cast<int>(sizeof(T));

  /// x in every lane. (nvcc ends when it sees a vector made by braces.)
  [[gnu::always_inline]] static Type filled(T x) {
    Type v;
    for (int e = 0; e < kLanes; ++e) v[e] = x;
    return v;
  }
  /// From and to any address.
  [[gnu::always_inline]] static Type load(const T* p) {
    Type v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  [[gnu::always_inline]] static void store(T* p, const Type& v) { std::memcpy(p, &v, sizeof v); }

  /// For each lane the entry of this number, of 0 to 15, in a table of bytes that is there again every 16 lanes.
  [[gnu::always_inline]] static Type looked_up(const Type& table, const Type& number) requires(sizeof(T) == 1) {
#if defined(ISOHALO_HAS_SHUFFLES)  // no operator of the extension does this in both compilers
    if constexpr (Bytes == 64)
      return reinterpret_cast<Type>(
          _mm512_shuffle_epi8(reinterpret_cast<__m512i>(table), reinterpret_cast<__m512i>(number)));
    else if constexpr (Bytes == 32)
      return reinterpret_cast<Type>(
          _mm256_shuffle_epi8(reinterpret_cast<__m256i>(table), reinterpret_cast<__m256i>(number)));
    else
      return reinterpret_cast<Type>(
          _mm_shuffle_epi8(reinterpret_cast<__m128i>(table), reinterpret_cast<__m128i>(number)));
#else
    Type v;
    for (int e = 0; e < kLanes; ++e) v[e] = table[number[e]];
    return v;
#endif
  }

  /// The elements that lie First behind those of a, where b has the elements behind a but `skipped` less: lane e is
  /// element First + e of a, or of b in its place.
  template <int First, int Skipped>
  [[gnu::always_inline]] static Type shifted(const Type& a, const Type& b) {
#if defined(__CUDACC__)  // which loses the dots behind the list of lanes
    Type v;
    for (int e = 0; e < kLanes; ++e) v[e] = First + e < kLanes ? a[First + e] : b[First + e + Skipped - kLanes];
    return v;
#else
    return [&]<int... E>(std::integer_sequence<int, E...>) ISOHALO_INLINED {
      return __builtin_shufflevector(a, b, (First + E < kLanes ? First + E : First + E + Skipped)...);
    }
    (std::make_integer_sequence<int, kLanes>());
#endif
  }
};

}  // namespace isohalo::detail
