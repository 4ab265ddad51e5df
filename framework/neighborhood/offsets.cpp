#include "framework/neighborhood/offsets.hpp"

#include <algorithm>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

template <int D, class Keep>
Offsets<D> within(int radius, Self self, Keep&& keep) {
  if (radius < 0) throw UsageError("neighborhood radius " + std::to_string(radius) + " is negative");
  Box<D> cube;
  for (int j = 0; j < D; ++j) cube.low[j] = -radius, cube.high[j] = radius + 1;
  Offsets<D> list;
  for_each_cell(cube, [&](const Index<D>& o) {
    if (o == Index<D>{} ? self == Self::include : keep(o)) list.push_back(o);
  });
  return list;
}

template <int D>
std::int64_t manhattan(const Index<D>& o) {
  std::int64_t s = 0;
  for (int j = 0; j < D; ++j) s += o[j] < 0 ? -o[j] : o[j];
  return s;
}

template <int D>
int nonzeros(const Index<D>& o) {
  int n = 0;
  for (int j = 0; j < D; ++j) n += o[j] != 0;
  return n;
}

}  // namespace

template <int D>
Offsets<D> moore(int radius, Self self) {
  return within<D>(radius, self, [](const Index<D>&) { return true; });
}

template <int D>
Offsets<D> von_neumann(int radius, Self self) {
  return within<D>(radius, self, [=](const Index<D>& o) { return manhattan<D>(o) <= radius; });
}

template <int D>
Offsets<D> star(int radius, Self self) {
  return within<D>(radius, self, [](const Index<D>& o) { return nonzeros<D>(o) == 1; });
}

std::vector<int> ball_offsets(int dimensions, int radius, bool manhattan, Self self) {
  if (radius < 0) throw UsageError("neighborhood radius " + std::to_string(radius) + " is negative");
  double cube = 1;
  for (int j = 0; j < dimensions; ++j) cube *= 2.0 * radius + 1;
  if (cube > 1 << 24)
    throw UsageError("neighborhood radius " + std::to_string(radius) + " in " + std::to_string(dimensions) +
                     " dimensions: a cube of " + std::to_string(cube) + " offsets; the limit is 2^24");
  std::vector<int> list, o(static_cast<std::size_t>(dimensions), -radius);
  for (;;) {
    std::int64_t length = 0, farthest = 0;
    for (int c : o) length += c < 0 ? -c : c, farthest = std::max<std::int64_t>(farthest, c < 0 ? -c : c);
    if (farthest == 0 ? self == Self::include : !manhattan || length <= radius)
      list.insert(list.end(), o.begin(), o.end());
    std::size_t j = o.size();
    while (j > 0 && o[j - 1] == radius) o[--j] = -radius;
    if (j == 0) return list;
    ++o[j - 1];
  }
}

template <int D>
Offsets<D> column_major(Offsets<D> list) {
  std::stable_sort(list.begin(), list.end(), [](const Index<D>& a, const Index<D>& b) {
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  });
  return list;
}

template <int D>
Offsets<D> shuffled(Offsets<D> list, std::uint64_t seed) {
  for (std::size_t n = list.size(); n > 1; --n) {
    seed += 0x9E3779B97F4A7C15u;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    std::swap(list[n - 1], list[z % n]);
  }
  return list;
}

#define ISOHALO_INSTANTIATE(D)                     \
  template Offsets<D> moore<D>(int, Self);         \
  template Offsets<D> von_neumann<D>(int, Self);   \
  template Offsets<D> star<D>(int, Self);          \
  template Offsets<D> column_major<D>(Offsets<D>); \
  template Offsets<D> shuffled<D>(Offsets<D>, std::uint64_t);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
