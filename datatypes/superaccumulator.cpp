#include "datatypes/superaccumulator.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace isohalo {

namespace {

constexpr std::uint64_t kLow = 0xffffffffu;
__extension__ using WideWord = unsigned __int128;

}  // namespace

void Superaccumulator::add(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  const bool negative = bits >> 63;
  if (exponent == 0x7ff) {
    ++words_[mantissa ? kNaN : negative ? kMinusInfinity : kPlusInfinity];
    return;
  }
  if (exponent > 0) mantissa |= std::uint64_t{1} << 52;
  const int lowest_bit = exponent > 0 ? exponent - 1 : 0;  // above 2^-1074
  const int shift = lowest_bit & 31;
  const std::uint64_t low = (mantissa & kLow) << shift, high = (mantissa >> 32) << shift;
  std::int64_t* const limb = words_.data() + (lowest_bit >> 5);
  const auto a = static_cast<std::int64_t>(low & kLow);
  const auto b = static_cast<std::int64_t>((low >> 32) + (high & kLow));
  const auto c = static_cast<std::int64_t>(high >> 32);
  if (negative)
    limb[0] -= a, limb[1] -= b, limb[2] -= c;
  else
    limb[0] += a, limb[1] += b, limb[2] += c;
  if (++waiting_ == kMostWaiting) settle();
}

void Superaccumulator::settle() {
  for (int k = 0; k + 1 < kLimbs; ++k) {
    words_[k + 1] += words_[k] >> 32;  // rounds down, so that what stays is not negative
    words_[k] &= static_cast<std::int64_t>(kLow);
  }
  waiting_ = 0;
}

void Superaccumulator::clear() {
  words_.fill(0);
  waiting_ = 0;
}

double Superaccumulator::value() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (words_[kNaN] || (words_[kPlusInfinity] && words_[kMinusInfinity]))
    return std::numeric_limits<double>::quiet_NaN();
  if (words_[kPlusInfinity]) return infinity;
  if (words_[kMinusInfinity]) return -infinity;
  settle();
  Superaccumulator magnitude = *this;
  const bool negative = words_[kLimbs - 1] < 0;
  if (negative) {
    for (int k = 0; k < kLimbs; ++k) magnitude.words_[k] = -words_[k];
    magnitude.settle();
  }
  const auto& w = magnitude.words_;
  int top = kLimbs - 1;
  while (top > 2 && w[top] == 0) --top;
  WideWord kept = 0;  // three limbs are more than a double holds, whichever bit of the first is its highest
  for (int k = top; k > top - 3; --k) kept = kept << 32 | static_cast<std::uint64_t>(w[k]);
  const bool more = std::any_of(w.begin(), w.begin() + (top - 2), [](std::int64_t limb) { return limb != 0; });
  kept |= more ? 1u : 0u;  // decides a tie; the conversion rounds to nearest even
  const double result = std::ldexp(static_cast<double>(kept), 32 * (top - 2) - 1074);
  return negative ? -result : result;
}

}  // namespace isohalo
