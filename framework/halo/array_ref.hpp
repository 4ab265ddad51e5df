#pragma once
/// A user's (or our) array of one block with ghost cells, described but not owned.

#include <cstddef>
#include <string>

#include "datatypes/box.hpp"
#include "datatypes/datatype.hpp"
#include "datatypes/error.hpp"

namespace isohalo {

/// Where the cells of one block lie in host memory. `data` is the address of the first *owned* cell; the cell at
/// global index i lies at data[sum_j (i[j] - owned.low[j]) * stride[j]]. Ghost layers may be wider than a plan
/// needs.
template <class T, int D>
struct ArrayRef {
  T* data = nullptr;
  Box<D> owned;         ///< global indices of this rank's cells
  Index<D> ghost_low;   ///< ghost layers below the block, per dimension
  Index<D> ghost_high;  ///< ghost layers above
  Index<D> stride;      ///< elements between neighbors; stride[D-1] is 1 for a C array

  T& at(const Index<D>& i) const {
    std::int64_t k = 0;
    for (int j = 0; j < D; ++j) k += (i[j] - owned.low[j]) * stride[j];
    return data[k];
  }
  /// Owned cells and ghosts.
  Box<D> allocated() const { return owned.grown(ghost_low, ghost_high); }
};

/// An array with its type forgotten: what every transport moves.
template <int D>
struct ErasedArray {
  std::byte* data = nullptr;  ///< the first owned cell
  std::int64_t bytes = 0;     ///< of one element that travel
  std::int64_t pitch = 0;  ///< bytes that strides count in: `bytes`, or more when elements hold something else too
  Datatype (*element)() = nullptr;
  Box<D> owned;
  Index<D> ghost_low{}, ghost_high{}, stride{};  ///< stride in elements

  std::byte* cell(const Index<D>& i) const {
    std::int64_t k = 0;
    for (int j = 0; j < D; ++j) k += (i[j] - owned.low[j]) * stride[j];
    return data + k * pitch;
  }
  Index<D> byte_strides() const {
    Index<D> s;
    for (int j = 0; j < D; ++j) s[j] = stride[j] * pitch;
    return s;
  }
};

template <class T, int D>
ErasedArray<D> erase(const ArrayRef<T, D>& a) {
  return {reinterpret_cast<std::byte*>(a.data),
          static_cast<std::int64_t>(sizeof(T)),
          static_cast<std::int64_t>(sizeof(T)),
          &value_type<T>,
          a.owned,
          a.ghost_low,
          a.ghost_high,
          a.stride};
}

/// Describes a C-order array of the user that holds `owned` with `width` ghost layers on every side; `first` points
/// to its first element, a ghost when width > 0. `row_padding` elements may follow each row. Local, no copy; the
/// memory must outlive the description.
template <class T, int D>
ArrayRef<T, D> adopt(T* first, const Box<D>& owned, std::int64_t width, std::int64_t row_padding = 0) {
  if (width < 0) throw UsageError("adopt: ghost width " + std::to_string(width) + " is negative");
  ArrayRef<T, D> a;
  a.owned = owned;
  a.ghost_low.fill(width);
  a.ghost_high.fill(width);
  std::int64_t stride = 1, origin = 0;
  for (int j = D - 1; j >= 0; --j) {
    a.stride[j] = stride;
    origin += width * stride;
    stride *= owned.extent(j) + 2 * width + (j == D - 1 ? row_padding : 0);
  }
  a.data = first + origin;
  return a;
}

/// Elements that such an array has: the size for the user's std::vector.
template <int D>
std::int64_t adopted_size(const Box<D>& owned, std::int64_t width, std::int64_t row_padding = 0) {
  std::int64_t n = 1;
  for (int j = 0; j < D; ++j) n *= owned.extent(j) + 2 * width + (j == D - 1 ? row_padding : 0);
  return n;
}

}  // namespace isohalo
