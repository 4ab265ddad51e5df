#include "framework/neighborhood/offsets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

/// Flat list of the offsets with coordinates of at most `radius` for whose Manhattan and Chebyshev lengths `keep`
/// is true.
template <class Keep>
std::vector<int> within(int dimensions, int radius, Self self, Keep&& keep) {
  if (radius < 0) throw UsageError("neighborhood radius " + std::to_string(radius) + " is negative");
  std::vector<int> list, o(static_cast<std::size_t>(dimensions), -radius);
  for (;;) {
    std::int64_t length = 0, farthest = 0;
    for (int c : o) length += std::abs(c), farthest = std::max<std::int64_t>(farthest, std::abs(c));
    if (farthest == 0 ? self == Self::include : keep(length, farthest)) list.insert(list.end(), o.begin(), o.end());
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
  return offsets<D>(within(D, radius, self, [](auto, auto) { return true; }));
}

template <int D>
Offsets<D> von_neumann(int radius, Self self) {
  return offsets<D>(within(D, radius, self, [=](auto length, auto) { return length <= radius; }));
}

template <int D>
Offsets<D> star(int radius, Self self) {
  return offsets<D>(within(D, radius, self, [](auto length, auto farthest) { return length == farthest; }));
}

std::vector<int> ball_offsets(int dimensions, int radius, bool manhattan, Self self) {
  const double cube = std::pow(2.0 * radius + 1, dimensions);
  if (radius > 0 && cube > 1 << 24)
    throw UsageError("neighborhood radius " + std::to_string(radius) + " in " + std::to_string(dimensions) +
                     " dimensions: a cube of " + std::to_string(cube) + " offsets; the limit is 2^24");
  return within(dimensions, radius, self, [=](auto length, auto) { return !manhattan || length <= radius; });
}

#define ISOHALO_INSTANTIATE(D)                   \
  template Offsets<D> moore<D>(int, Self);       \
  template Offsets<D> von_neumann<D>(int, Self); \
  template Offsets<D> star<D>(int, Self);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
