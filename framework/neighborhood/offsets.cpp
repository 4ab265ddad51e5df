#include "framework/neighborhood/offsets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

void refuse_negative(int radius) {
  if (radius < 0) throw UsageError("neighborhood radius " + std::to_string(radius) + " is negative");
}

/// Flat list of the offsets with coordinates of at most `radius` and Manhattan lengths of at most `longest`.
std::vector<int> within(int dimensions, int radius, Self self, std::int64_t longest) {
  refuse_negative(radius);
  const double cube = std::pow(2.0 * radius + 1, dimensions);
  if (radius > 0 && cube > 1 << 24)
    throw UsageError("neighborhood radius " + std::to_string(radius) + " in " + std::to_string(dimensions) +
                     " dimensions: a cube of " + std::to_string(std::llround(cube)) + " offsets; the limit is 2^24");
  std::vector<int> list, o(static_cast<std::size_t>(dimensions), -radius);
  for (;;) {
    std::int64_t length = 0;
    for (int c : o) length += std::abs(c);
    if (length == 0 ? self == Self::include : length <= longest) list.insert(list.end(), o.begin(), o.end());
    std::size_t j = o.size();
    while (j > 0 && o[j - 1] == radius) o[--j] = -radius;
    if (j == 0) return list;
    ++o[j - 1];
  }
}

template <int D>
Offsets<D> offsets(const std::vector<int>& coordinates) {
  Offsets<D> list(coordinates.size() / D);
  for (std::size_t k = 0; k < coordinates.size(); ++k) list[k / D][k % D] = coordinates[k];
  return list;
}

}  // namespace

template <int D>
Offsets<D> moore(int radius, Self self) {
  return offsets<D>(within(D, radius, self, std::int64_t{D} * radius));
}

template <int D>
Offsets<D> von_neumann(int radius, Self self) {
  return offsets<D>(within(D, radius, self, radius));
}

template <int D>
Offsets<D> star(int radius, Self self) {
  refuse_negative(radius);
  Offsets<D> list;
  const auto add = [&](int j, int low, int high) {
    for (int c = low; c <= high; ++c) list.push_back({}), list.back()[j] = c;
  };
  for (int j = 0; j < D; ++j) add(j, -radius, -1);
  if (self == Self::include) list.push_back({});
  for (int j = D - 1; j >= 0; --j) add(j, 1, radius);
  return list;
}

std::vector<int> ball_offsets(int dimensions, int radius, bool manhattan, Self self) {
  return within(dimensions, radius, self, std::int64_t{radius} * (manhattan ? 1 : dimensions));
}

#define ISOHALO_INSTANTIATE(D)                   \
  template Offsets<D> moore<D>(int, Self);       \
  template Offsets<D> von_neumann<D>(int, Self); \
  template Offsets<D> star<D>(int, Self);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
