#pragma once
/// The exact sum of non-negative binary64 numbers: no order, and so no number of ranks, changes it.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// A fixed-point number that covers all of binary64, in 32-bit digits with room for carries. Sums are exact;
/// `value` rounds once, to nearest even.
class ExactSum {
 public:
  /// `x` >= 0; infinity makes the sum infinite. Not for NaN.
  void add(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<unsigned>(bits >> 52);
    if (exponent == 0x7ff) {
      infinite_ = 1;
      return;
    }
    const std::uint64_t mantissa = (bits & kFraction) | (exponent ? kFraction + 1 : 0);
    const unsigned at = exponent ? exponent - 1 : 0, shift = at % 32;
    std::uint64_t* const d = digits_.data() + at / 32;
    const std::uint64_t low = mantissa << shift;  // 53 bits move by at most 31: three digits
    d[0] += low & kDigit;
    d[1] += low >> 32;
    d[2] += shift ? mantissa >> (64 - shift) : 0;
    if (++added_ == (std::uint64_t{1} << 30)) carry();
  }

  /// The sum of all ranks, on all of them. Collective.
  void combine(const Communicator& comm) {
    carry();
    comm.allreduce(digits_.data(), kDigits, MPI_UINT64_T, MPI_SUM);
    infinite_ = comm.sum(infinite_) ? 1 : 0;
    carry();
  }

  double value() {
    carry();
    if (infinite_) return std::numeric_limits<double>::infinity();
    int top = kDigits - 1;
    while (top > 1 && digits_[static_cast<std::size_t>(top)] == 0) --top;
    // The leading two or three digits as 64 bits, and whether anything was cut off.
    const auto digit = [&](int k) { return k >= 0 ? digits_[static_cast<std::size_t>(k)] : 0; };
    const int shift = std::countl_zero(static_cast<std::uint32_t>(digit(top)));
    std::uint64_t head = digit(top) << 32 | digit(top - 1);
    if (shift < 32) head = shift ? head << shift | digit(top - 2) >> (32 - shift) : head;
    bool rest = shift < 32 && (digit(top - 2) << shift & kDigit) != 0;
    for (int k = 0; k < top - 2; ++k) rest = rest || digit(k) != 0;
    // 53 of the 64 bits stay, the last of the others stands for the rest. Nothing to cut where numbers are tiny.
    const std::uint64_t kept = head | (rest ? 1 : 0);
    const int exponent = 32 * (top - 1) - (shift < 32 ? shift : 0) - 1074;
    return std::ldexp(rounded(kept), exponent);
  }

 private:
  static constexpr std::uint64_t kDigit = 0xffffffffu, kFraction = (std::uint64_t{1} << 52) - 1;
  static constexpr int kDigits = 2100 / 32 + 4;

  /// To nearest even in 53 bits.
  static double rounded(std::uint64_t v) {
    if (v >> 53 == 0) return static_cast<double>(v);
    const int drop = 11 - std::countl_zero(v);
    const std::uint64_t half = std::uint64_t{1} << (drop - 1), cut = v & ((half << 1) - 1);
    std::uint64_t kept = v >> drop;
    if (cut > half || (cut == half && (kept & 1))) ++kept;
    return std::ldexp(static_cast<double>(kept), drop);
  }
  void carry() {
    added_ = 0;
    std::uint64_t over = 0;
    for (auto& d : digits_) {
      d += over;
      over = d >> 32;
      d &= kDigit;
    }
  }

  std::array<std::uint64_t, kDigits> digits_{};
  std::uint64_t infinite_ = 0, added_ = 0;
};

}  // namespace isohalo
