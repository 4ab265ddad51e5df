#pragma once
/// A mixing function for counter-based random numbers and digests.

#include <cstdint>

namespace isohalo {

/// The finaliser of SplitMix64: the mixing step of digests and of random fields.
inline std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

}  // namespace isohalo
