#pragma once
/// Exact sums of binary64 numbers: an integer as wide as the whole exponent range, rounded once.

#include <array>
#include <cstdint>
#include <span>

namespace isohalo {

/// A fixed-point sum of doubles in units of 2^-1074, in limbs of 32 bits held by 64-bit integers, so that carries
/// can wait and the sums of several ranks are sums of limbs. Order never matters. Source: Kulisch's long
/// accumulator; limbs with deferred carries as in Neal 2015, "Fast exact summation using small and large
/// superaccumulators".
///
/// The result is the exact sum rounded once to nearest even: what Python's math.fsum gives, an exact zero being +0
/// whatever the signs of the addends. Where math.fsum raises, IEEE arithmetic decides: a NaN or infinities of both
/// signs give the quiet NaN 0x7ff8000000000000, a sum beyond the largest double gives an infinity, and an
/// intermediate one does not.
class Superaccumulator {
 public:
  /// Bits -1074 .. 1023 of a double and 2^63 addends.
  static constexpr int kLimbs = 68;

  void add(double v);
  /// Settles the carries: afterwards the words of 2^30 accumulators can be added in 64 bits.
  void settle();
  /// All state as integers, to be added word by word (MPI_SUM of MPI_INT64_T) after `settle`.
  std::span<std::int64_t> words() { return words_; }
  void clear();
  /// The sum, rounded once. Settles.
  double value();

 private:
  static constexpr int kNaN = kLimbs, kPlusInfinity = kLimbs + 1, kMinusInfinity = kLimbs + 2;
  static constexpr int kMostWaiting = 1 << 29;  // adds put less than 2^33 on a limb

  std::array<std::int64_t, kLimbs + 3> words_{};
  int waiting_ = 0;
};

}  // namespace isohalo
