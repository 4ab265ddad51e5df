#include "framework/halo/array_ref.hpp"

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <limits>

namespace isohalo::detail {

std::int64_t saturated(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result))
    return std::numeric_limits<std::int64_t>::max();
  return result;
}

void check_adopted(std::int64_t width, std::int64_t row_padding) {
  if (width < 0) throw UsageError("adopt: ghost width " + std::to_string(width) + " is negative");
  if (row_padding < 0)
    throw UsageError("adopt: row padding " + std::to_string(row_padding) + " is negative: rows would overlap");
}

template <int D>
void check_strides(const ErasedArray<D>& a, const char* call, std::size_t array) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  struct Step {
    std::int64_t bytes, dimension, count;
    auto operator<=>(const Step&) const = default;
  };
  PerDim<Step, D> steps;
  for (int j = 0; j < D; ++j) {
    const std::int64_t count = saturated(1, a.owned.extent(j), saturated(1, a.ghost_low[j], a.ghost_high[j]));
    const std::int64_t stride = a.stride[j] == -most - 1 ? 0 : std::abs(a.stride[j]);
    steps[j] = {count < 2 ? most : saturated(stride, a.pitch, 0), j, count};  // of one cell it is never taken
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t span = a.bytes;  // of all cells along the dimensions so far
  for (const Step& s : steps) {
    if (s.bytes < span)
      throw UsageError(
          call + std::string(": the strides ") + to_string<D>(a.stride) + " of array " + std::to_string(array) +
          " let cells overlap: neighbors in dimension " + std::to_string(s.dimension) + " are " +
          std::to_string(s.bytes) + " bytes apart, the cells " +
          (&s == steps.data() ? "have " : "of dimensions with smaller strides span ") + std::to_string(span));
    span = saturated(s.bytes, s.count < 2 ? 0 : s.count - 1, span);
    if (s.count >= 2 && span == most)
      throw UsageError(call + std::string(": the strides ") + to_string<D>(a.stride) + " of array " +
                       std::to_string(array) + " go beyond all addresses in dimension " +
                       std::to_string(s.dimension));
  }
}

template <int D>
void check_swept(const Box<D>& cells, const ErasedArray<D>& a, const ErasedArray<D>& like, const char* does) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(std::string("RowSweep: an array that it ") + does + " " + why);
  };
  if (!a.data) refuse("is NULL");
  if (a.stride[D - 1] != 1) refuse("has strides " + to_string<D>(a.stride) + ": the last one must be 1");
  if (a.stride != like.stride || a.owned != like.owned)
    refuse("has strides " + to_string<D>(a.stride) + " and a block of " + shape_string<D>(a.owned.extents()) +
           " cells from " + to_string<D>(a.owned.low) + ", the first that it writes " + to_string<D>(like.stride) +
           " and " + shape_string<D>(like.owned.extents()) + " from " + to_string<D>(like.owned.low) +
           ": they must be the same");
  const Box<D> all = a.owned.grown(a.ghost_low, a.ghost_high);
  if (!all.contains(cells))
    refuse("holds the cells from " + to_string<D>(all.low) + " to before " + to_string<D>(all.high) +
           ", the sweep needs those from " + to_string<D>(cells.low) + " to before " + to_string<D>(cells.high) +
           ": give it more ghost layers or a smaller region");
}

#define ISOHALO_INSTANTIATE(D)                                        \
  template void check_strides<D>(const ErasedArray<D>&, const char*, std::size_t); \
  template void check_swept<D>(const Box<D>&, const ErasedArray<D>&, const ErasedArray<D>&, const char*);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
