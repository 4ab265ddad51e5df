#pragma once
/// What the checks of a checkpoint find. Private to framework/io and framework/run.

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace isohalo::detail {

inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// One line for each thing that is not as it should be.
struct Problems {
  std::vector<std::string> lines;

  void that(bool good, const std::string& problem) {
    if (!good) lines.push_back(problem);
  }
  void number(const std::string& what, double stored, double expected) {
    that(same_bits(stored, expected), fmt::format("{} is {:.17g}, it should be {:.17g}", what, stored, expected));
  }
};

}  // namespace isohalo::detail
