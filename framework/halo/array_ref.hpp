#pragma once
/// A user's (or our) array of one block with ghost cells, described but not owned.

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "datatypes/box.hpp"
#include "datatypes/datatype.hpp"
#include "datatypes/error.hpp"

namespace isohalo {

/// What a compiler says about elements that are no plain bytes.
#define ISOHALO_TRIVIALLY_COPYABLE \
  "isohalo moves the elements of arrays as bytes: they must be trivially copyable (numbers, or structs of them)"

/// Where the cells of one block lie in host memory (for Kokkos views see view_ref.hpp). `data` is the address of
/// the first *owned* cell; the cell at global index i lies at data[sum_j (i[j] - owned.low[j]) * stride[j]]. Ghost
/// layers may be wider than a plan needs. Trivially copyable; kernels of a device that reaches the memory may call
/// `at`.
template <class T, int D>
struct ArrayRef {
  static_assert(std::is_trivially_copyable_v<T>, ISOHALO_TRIVIALLY_COPYABLE);
  T* data = nullptr;
  Box<D> owned;           ///< global indices of this rank's cells
  Index<D> ghost_low{};   ///< ghost layers below the block, per dimension
  Index<D> ghost_high{};  ///< ghost layers above
  Index<D> stride{};      ///< elements between neighbors; stride[D-1] is 1 for a C array

  ISOHALO_FUNCTION T& at(const Index<D>& i) const { return data[offset_of<D>(i, owned.low, stride)]; }
  /// Owned cells and ghosts.
  Box<D> allocated() const { return owned.grown(ghost_low, ghost_high); }
};
static_assert(std::is_trivially_copyable_v<ArrayRef<double, 3>>);

namespace detail {
template <int D>
struct KernelCopies;
}

/// An array with its type forgotten: what every transport moves.
template <int D>
struct ErasedArray {
  std::byte* data = nullptr;  ///< the first owned cell
  std::int64_t bytes = 0;     ///< of one element that travel
  std::int64_t pitch = 0;  ///< bytes that strides count in: `bytes`, or more when elements hold something else too
  Datatype (*element)() = nullptr;
  Box<D> owned;
  Index<D> ghost_low{}, ghost_high{}, stride{};  ///< stride in elements
  /// Who copies its cells; null: host memory, where anybody can (see view_ref.hpp).
  const detail::KernelCopies<D>* kernels = nullptr;
  int face = -1;  ///< the dimension on whose faces the elements lie (see faces.hpp); -1: in cells

  std::byte* cell(const Index<D>& i) const { return data + offset_of<D>(i, owned.low, stride) * pitch; }
  Index<D> byte_strides() const {
    Index<D> s;
    for (int j = 0; j < D; ++j) s[j] = stride[j] * pitch;
    return s;
  }
};

template <int D>
const ErasedArray<D>& erase(const ErasedArray<D>& a) {
  return a;
}
template <class T, int D>
ErasedArray<D> erase(const ArrayRef<T, D>& a) {
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
  return {reinterpret_cast<std::byte*>(a.data),
          bytes,
          bytes,
          &value_type<T>,
          a.owned,
          a.ghost_low,
          a.ghost_high,
          a.stride};
}

namespace detail {

/// a * b + c, at most the largest number; none is negative.
std::int64_t saturated(std::int64_t a, std::int64_t b, std::int64_t c);

/// Of the C-order array of a box, whose elements are `element` apart and whose rows are each followed by so many
/// elements.
template <int D>
Index<D> c_strides(const Box<D>& box, std::int64_t row_padding = 0, std::int64_t element = 1) {
  Index<D> strides;
  for (int j = D - 1; j >= 0; --j) {
    strides[j] = element;
    element *= box.extent(j) + (j == D - 1 ? row_padding : 0);
  }
  return strides;
}

/// The C-order array of a block and its ghost layers that begins at `first`; each row is followed by so many
/// elements.
template <class T, int D>
ArrayRef<T, D> c_order(T* first, const Box<D>& owned, const Index<D>& ghost_low, const Index<D>& ghost_high,
                       std::int64_t row_padding) {
  const Box<D> all = owned.grown(ghost_low, ghost_high);
  ArrayRef<T, D> a{first, owned, ghost_low, ghost_high, c_strides(all, row_padding)};
  if (first) a.data += offset_of<D>(owned.low, all.low, a.stride);  // NULL stays NULL: an exchange refuses it
  return a;
}

/// Throws UsageError when one of them is negative.
void check_adopted(std::int64_t width, std::int64_t row_padding);

/// Throws UsageError, naming the dimension, when two cells of the array would share bytes: when the strides, by
/// size, do not each step over all that the smaller ones span. `call`: who takes it; `array`: its number. Local.
template <int D>
void check_strides(const ErasedArray<D>& a, const char* call, std::size_t array);

/// Throws UsageError when an array that a sweep `does` (reads, writes) is NULL, lacks some of the cells, has no
/// rows of neighbors, or has another block or other strides than `like`. Local.
template <int D>
void check_swept(const Box<D>& cells, const ErasedArray<D>& a, const ErasedArray<D>& like, const char* does);

}  // namespace detail

/// Describes a C-order array of the user that holds `owned` with `width` ghost layers on every side; `first` points
/// to its first element, a ghost when width > 0. `row_padding` elements may follow each row. Local, no copy; the
/// memory must outlive the description.
template <class T, int D>
ArrayRef<T, D> adopt(T* first, const Box<D>& owned, std::int64_t width, std::int64_t row_padding = 0) {
  detail::check_adopted(width, row_padding);
  const Index<D> ghosts = index_of<D>(width);
  return detail::c_order(first, owned, ghosts, ghosts, row_padding);
}

/// Elements that such an array has: the size for the user's std::vector. The largest number when it is beyond that.
template <int D>
std::int64_t adopted_size(const Box<D>& owned, std::int64_t width, std::int64_t row_padding = 0) {
  std::int64_t n = 1;
  for (int j = 0; j < D; ++j) {
    const std::int64_t line = detail::saturated(width, 2, owned.extent(j));
    n = detail::saturated(n, j == D - 1 ? detail::saturated(line, 1, row_padding) : line, 0);
  }
  return n;
}

/// The same for memory of a known size, as of a std::vector: `adopt(std::span(values), ..)`. Throws UsageError when
/// it is too small.
template <class T, std::size_t N, int D>
ArrayRef<T, D> adopt(std::span<T, N> memory, const Box<D>& owned, std::int64_t width,
                     std::int64_t row_padding = 0) {
  detail::check_adopted(width, row_padding);
  const std::int64_t all = adopted_size(owned, width, row_padding);
  const bool beyond = all == std::numeric_limits<std::int64_t>::max();
  const std::int64_t needed = beyond ? all : all - row_padding;  // none after the last row
  if (beyond || static_cast<std::int64_t>(memory.size()) < needed)
    throw UsageError("adopt: the memory has " + std::to_string(memory.size()) + " elements, a block of " +
                     shape_string<D>(owned.extents()) + " cells with " + std::to_string(width) +
                     " ghost layers on every side needs " + std::to_string(needed) + ": see adopted_size");
  return adopt(memory.data(), owned, width, row_padding);
}

}  // namespace isohalo
