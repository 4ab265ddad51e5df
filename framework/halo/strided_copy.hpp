#pragma once
/// Copies between boxes of one strided array, with the loop that runs longest innermost.

#include <cstring>

#include "datatypes/box.hpp"

namespace isohalo {

namespace detail {

template <class Word>
void copy_line(std::byte* to, const std::byte* from, std::int64_t n, std::int64_t stride_bytes) {
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * stride_bytes, from + i * stride_bytes, sizeof(Word));
}

inline void copy_line(std::byte* to, const std::byte* from, std::int64_t n, std::int64_t stride_bytes,
                      std::int64_t bytes) {
  if (stride_bytes == bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(n * bytes));
  } else if (bytes == 8) {
    copy_line<std::uint64_t>(to, from, n, stride_bytes);
  } else if (bytes == 4) {
    copy_line<std::uint32_t>(to, from, n, stride_bytes);
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(to + i * stride_bytes, from + i * stride_bytes, static_cast<std::size_t>(bytes));
  }
}

}  // namespace detail

/// Copies the cells of a box of shape `extents` from `from` to `to`; both have strides `stride` (in elements of
/// `bytes` bytes). The two boxes must not overlap.
template <int D>
void strided_copy(std::byte* to, const std::byte* from, const Index<D>& extents, const Index<D>& stride,
                  std::int64_t bytes) {
  for (int j = 0; j < D; ++j)
    if (extents[j] <= 0) return;
  int inner = D - 1;  // whole rows, unless rows are a few cells and another dimension is longer
  if (extents[D - 1] < 8)
    for (int j = D - 2; j >= 0; --j)
      if (extents[j] > extents[inner]) inner = j;
  Box<D> lines = box_of_shape<D>(extents);
  lines.high[inner] = 1;
  for_each_cell(lines, [&](const Index<D>& i) {
    std::int64_t at = 0;
    for (int j = 0; j < D; ++j) at += i[j] * stride[j];
    detail::copy_line(to + at * bytes, from + at * bytes, extents[inner], stride[inner] * bytes, bytes);
  });
}

}  // namespace isohalo
