#pragma once
/// Arrays whose elements are known at run time only, by their size or by an MPI datatype, and single members of
/// arrays of structures.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/halo/array_ref.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Describes a C-order array of elements of so many bytes, whatever they are and of any alignment, as `adopt` does
/// with a type: `first` points to the first element, a ghost when width > 0; `row_padding` elements may follow each
/// row. The strides are in bytes (`pitch` is 1); an array with others may be filled in by hand: what lies between
/// elements is never touched. Local, no copy. Throws UsageError for a negative width or padding, or elements of
/// less than a byte.
template <int D>
ErasedArray<D> adopt_bytes(void* first, std::int64_t bytes, const Box<D>& owned, std::int64_t width,
                           std::int64_t row_padding = 0);

/// One member of an array of structures, alone: `member_of(cells, &Cell::density)`. What else a structure holds is
/// neither sent nor touched. Local, no copy.
template <class T, int D, class M>
ErasedArray<D> member_of(const ArrayRef<T, D>& a, M T::*member) {
  static_assert(std::is_trivially_copyable_v<M>, ISOHALO_TRIVIALLY_COPYABLE);
  ErasedArray<D> e = erase(a);
  if (a.data) e.data = reinterpret_cast<std::byte*>(&(a.data->*member));
  e.bytes = static_cast<std::int64_t>(sizeof(M));
  e.element = &value_type<M>;
  return e;
}

/// What an MPI datatype says of an element: which of its bytes travel, and where the next element begins. Gaps
/// belong to the user and are never touched.
class ElementLayout {
 public:
  /// A run of bytes that travels, from an element's address on.
  struct Run {
    std::int64_t offset, length;
  };

  /// Of a committed datatype. Local. Throws UsageError for MPI_DATATYPE_NULL and for a type without
  /// data or without a positive extent.
  ElementLayout(MPI_Datatype type, const Communicator& comm);

  const std::vector<Run>& runs() const { return runs_; }
  std::int64_t extent() const { return extent_; }

 private:
  std::vector<Run> runs_;
  std::int64_t extent_ = 0;
};

/// The arrays that a C-order array of such elements consists of, one for each run: an exchange of them brings the
/// elements. `first`, `width` and `row_padding` as in `adopt_bytes`. Local. As in a receive of MPI's, elements must
/// not overlap in the array.
template <int D>
std::vector<ErasedArray<D>> adopt_elements(void* first, const ElementLayout& element, const Box<D>& owned,
                                           std::int64_t width, std::int64_t row_padding = 0);

}  // namespace isohalo
