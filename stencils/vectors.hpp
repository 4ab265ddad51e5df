#pragma once
/// Vectors of the processor, by the extension that GCC and Clang share: operators work lane by lane, each lane
/// rounded as one number is.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

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

/// f(0), f(1), .. f(N - 1), each with a constant: only so do the vectors of an array all stay in registers.
template <std::size_t N, class F>
[[gnu::always_inline]] inline void each(const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) ISOHALO_INLINED {
    (f(std::integral_constant<std::size_t, I>()), ...);
  }
  (std::make_index_sequence<N>());
}

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
  /// The same, and it stays in a register: GCC would read memory again wherever the vector is used.
  [[gnu::always_inline]] static Type load_once(const T* p) {
    Type v = load(p);
#if defined(__x86_64__) && !defined(__CUDACC__)
    if constexpr (Bytes <= kVectorBytes) asm("" : "+v"(v));
#endif
    return v;
  }
  [[gnu::always_inline]] static void store(T* p, const Type& v) {
    std::memcpy(p, &v, sizeof v);
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
