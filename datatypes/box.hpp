#pragma once
/// Half-open integer boxes of cell indices: the one shape that all geometry is made of.
///
/// Index order: dimension 0 is the slowest, dimension D-1 the fastest (x). No MPI, no memory.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "datatypes/function.hpp"

/// Explicit instantiations: `macro(D)` for every number of dimensions that there is.
#define ISOHALO_FOR_EACH_DIMENSION(macro) macro(1) macro(2) macro(3) macro(4)
/// `macro(T, D)` for all fields of floating-point numbers, and for all fields: bytes have 2 dimensions.
#define ISOHALO_FOR_EACH_FLOAT_FIELD(macro)                                                           \
  macro(double, 1) macro(double, 2) macro(double, 3) macro(double, 4) macro(float, 1) macro(float, 2) \
      macro(float, 3) macro(float, 4)
#define ISOHALO_FOR_EACH_FIELD(macro) ISOHALO_FOR_EACH_FLOAT_FIELD(macro) macro(std::uint8_t, 2)

namespace isohalo {

/// One T per dimension. (The cast keeps D out of template argument deduction, where std::array's size_t would
/// clash.)
template <class T, int D>
using PerDim = std::array<T, std::size_t(D)>;  // not static_cast, which nvcc makes a cast of another mangled name

/// One cell (or one vector of extents), a value per dimension.
template <int D>
using Index = PerDim<std::int64_t, D>;

/// n in every dimension.
template <int D>
constexpr Index<D> index_of(std::int64_t n) {
  Index<D> i{};
  i.fill(n);
  return i;
}

/// Cells i with low[j] <= i[j] < high[j] in every dimension j.
template <int D>
struct Box {
  Index<D> low{};
  Index<D> high{};

  /// The box of one cell.
  static Box of_cell(const Index<D>& i) {
    Box b{i, i};
    for (int j = 0; j < D; ++j) ++b.high[j];
    return b;
  }

  std::int64_t extent(int j) const { return high[j] > low[j] ? high[j] - low[j] : 0; }

  Index<D> extents() const {
    Index<D> e;
    for (int j = 0; j < D; ++j) e[j] = extent(j);
    return e;
  }

  bool empty() const {
    for (int j = 0; j < D; ++j)
      if (high[j] <= low[j]) return true;
    return false;
  }

  /// Number of cells; the caller keeps the global box below 2^62 cells (see `checked_cells`).
  std::int64_t cells() const {
    std::int64_t n = 1;
    for (int j = 0; j < D; ++j) n *= extent(j);
    return n;
  }

  bool contains(const Index<D>& i) const {
    for (int j = 0; j < D; ++j)
      if (i[j] < low[j] || i[j] >= high[j]) return false;
    return true;
  }

  bool contains(const Box& b) const {
    for (int j = 0; j < D; ++j)
      if (b.low[j] < low[j] || b.high[j] > high[j]) return false;
    return true;
  }

  Box intersect(const Box& b) const {
    Box r;
    for (int j = 0; j < D; ++j) {
      r.low[j] = std::max(low[j], b.low[j]);
      r.high[j] = std::min(high[j], b.high[j]);
    }
    return r;
  }

  Box shifted(const Index<D>& by) const {
    Box r = *this;
    for (int j = 0; j < D; ++j) r.low[j] += by[j], r.high[j] += by[j];
    return r;
  }

  /// Grown by `below[j]` cells on the low side and `above[j]` on the high side.
  Box grown(const Index<D>& below, const Index<D>& above) const {
    Box r = *this;
    for (int j = 0; j < D; ++j) r.low[j] -= below[j], r.high[j] += above[j];
    return r;
  }

  bool operator==(const Box&) const = default;
};

/// The box that starts at the origin.
template <int D>
Box<D> box_of_shape(const Index<D>& shape) {
  return {{}, shape};
}

/// A box of cells, and the shift that leads to them from where the same cells lie in another array, or in this one.
template <int D>
struct ShiftedBox {
  Box<D> box;
  Index<D> shift{};
};

/// i[j], not as part of a vector, which GCC makes of indices: a loop over rows has just stored i part by part, and
/// a vector of these is not read before all are in the cache, for longer than a row of 32 cells takes to be
/// computed.
template <int D>
ISOHALO_FUNCTION std::int64_t part_of(const Index<D>& i, int j) {
  std::int64_t part = i[j];
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__) && !defined(__SYCL_DEVICE_ONLY__)
  asm("" : "+r"(part));
#endif
  return part;
}

/// How far cell `i` lies from cell `from` in an array with these strides.
template <int D>
ISOHALO_FUNCTION std::int64_t offset_of(const Index<D>& i, const Index<D>& from, const Index<D>& stride) {
  std::int64_t k = 0;
  for (int j = 0; j < D; ++j) k += (part_of<D>(i, j) - from[j]) * stride[j];
  return k;
}

/// i + by.
template <int D>
Index<D> shifted(const Index<D>& i, const Index<D>& by) {
  Index<D> sum;
  for (int j = 0; j < D; ++j) sum[j] = part_of<D>(i, j) + by[j];
  return sum;
}
/// The cell `x` behind cell i in dimension D - 1; with 0 a copy.
template <int D>
Index<D> behind(const Index<D>& i, std::int64_t x) {
  Index<D> by{};
  by[D - 1] = x;
  return shifted<D>(i, by);
}

/// Row-major linear index of a cell of `box`, as docs/model.md's L when `box` starts at the origin.
template <int D>
std::int64_t linear_index(const Box<D>& box, const Index<D>& i) {
  std::int64_t l = 0;
  for (int j = 0; j < D; ++j) l = l * box.extent(j) + (i[j] - box.low[j]);
  return l;
}

/// Inverse of `linear_index`.
template <int D>
Index<D> index_of_linear(const Box<D>& box, std::int64_t l) {
  Index<D> i{};
  for (int j = D - 1; j >= 0; --j) {
    i[j] = box.low[j] + l % box.extent(j);
    l /= box.extent(j);
  }
  return i;
}

/// The cell that `i` means on a grid that starts at the origin and is periodic in every dimension.
template <int D>
Index<D> wrapped(const Box<D>& grid, Index<D> i) {
  for (int j = 0; j < D; ++j) i[j] = (i[j] % grid.extent(j) + grid.extent(j)) % grid.extent(j);
  return i;
}

/// Calls f(row) for every row of `box` in index order; row[D-1] is the first cell of the row.
template <int D, class F>
void for_each_row(const Box<D>& box, F&& f) {
  if (box.empty()) return;
  Index<D> i = box.low;
  for (;;) {
    f(static_cast<const Index<D>&>(i));
    int j = D - 2;
    for (; j >= 0; --j) {
      if (++i[j] < box.high[j]) break;
      i[j] = box.low[j];
    }
    if (j < 0) return;
  }
}

/// Calls f(cell) for every cell of `box` in index order.
template <int D, class F>
void for_each_cell(const Box<D>& box, F&& f) {
  for_each_row(box, [&](const Index<D>& row) {
    for (Index<D> i = behind<D>(row, 0); i[D - 1] < box.high[D - 1]; ++i[D - 1]) f(static_cast<const Index<D>&>(i));
  });
}

/// "3 x 4 x 5", for messages.
template <int D>
std::string shape_string(const Index<D>& shape, const char* between = " x ") {
  std::string s;
  for (int j = 0; j < D; ++j) s += (j ? between : "") + std::to_string(shape[j]);
  return s;
}

/// "(3, 4, 5)", for messages.
template <int D>
std::string to_string(const Index<D>& i) {
  return "(" + shape_string<D>(i, ", ") + ")";
}

}  // namespace isohalo
