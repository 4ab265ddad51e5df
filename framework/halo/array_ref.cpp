#include "framework/halo/array_ref.hpp"

#include <cstdlib>
#include <limits>

namespace isohalo::detail {

std::int64_t saturated(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result))
    return std::numeric_limits<std::int64_t>::max();
  return result;
}

template <int D>
void check_strides(const ErasedArray<D>& a, std::size_t array) {
  struct Step {
    std::int64_t bytes, count;
    int dimension;
  };
  PerDim<Step, D + 1> steps{};  // one more: GCC 12 cannot see where insertion ends
  int used = 0;
  for (int j = 0; j < D; ++j) {
    const std::int64_t count = a.owned.extent(j) + a.ghost_low[j] + a.ghost_high[j];
    const std::int64_t stride = a.stride[j] == std::numeric_limits<std::int64_t>::min() ? 0 : std::abs(a.stride[j]);
    if (count < 2) continue;  // the stride is never taken
    const Step step{saturated(stride, a.pitch, 0), count, j};
    int at = used++;
    for (; at > 0 && steps[at - 1].bytes > step.bytes; --at) steps[at] = steps[at - 1];
    steps[at] = step;
  }
  std::int64_t span = a.bytes;  // of all cells along the dimensions so far
  for (int k = 0; k < used; ++k) {
    const Step& s = steps[k];
    if (s.bytes < span)
      throw UsageError("halo exchange: the strides " + to_string<D>(a.stride) + " of array " +
                       std::to_string(array) + " let cells overlap: neighbors in dimension " +
                       std::to_string(s.dimension) + " are " + std::to_string(s.bytes) +
                       " bytes apart, the cells " +
                       (k == 0 ? "have " : "of dimensions with smaller strides span ") + std::to_string(span));
    span = saturated(s.bytes, s.count - 1, span);
  }
}

template void check_strides<1>(const ErasedArray<1>&, std::size_t);
template void check_strides<2>(const ErasedArray<2>&, std::size_t);
template void check_strides<3>(const ErasedArray<3>&, std::size_t);
template void check_strides<4>(const ErasedArray<4>&, std::size_t);

}  // namespace isohalo::detail
