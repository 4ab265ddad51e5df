#pragma once
/// Owning MPI datatypes and the constructors of halo shapes.

#include <mpi.h>

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "datatypes/region.hpp"

namespace isohalo {

/// A committed MPI datatype that is freed with its owner. Move-only; freeing never throws and is skipped once MPI
/// has ended. Predefined types can be held too and are never freed.
class Datatype {
 public:
  Datatype() = default;
  Datatype(Datatype&& other) noexcept;
  Datatype& operator=(Datatype&& other) noexcept;
  Datatype(const Datatype&) = delete;
  Datatype& operator=(const Datatype&) = delete;
  ~Datatype();

  /// Takes ownership of a derived type and commits it, unless others are only made of it.
  static Datatype adopt(MPI_Datatype type, bool commit = true);
  /// Holds a predefined type, or one that somebody else frees.
  static Datatype borrow(MPI_Datatype type);

  MPI_Datatype get() const { return type_; }
  /// Gives the handle away: the caller frees it.
  MPI_Datatype release() noexcept;
  explicit operator bool() const { return type_ != MPI_DATATYPE_NULL; }
  /// Bytes of data in one element of the type.
  std::int64_t size() const;

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool owned_ = false;
};

/// A run of `bytes` bytes as one committed element.
Datatype bytes_type(std::int64_t bytes);

/// The MPI type of a C++ value: the predefined one for the shipped types, otherwise a run of bytes.
template <class T>
Datatype value_type() {
  if constexpr (std::is_same_v<T, double>) return Datatype::borrow(MPI_DOUBLE);
  if constexpr (std::is_same_v<T, float>) return Datatype::borrow(MPI_FLOAT);
  if constexpr (std::is_same_v<T, std::uint8_t>) return Datatype::borrow(MPI_UINT8_T);
  if constexpr (std::is_same_v<T, std::int32_t>) return Datatype::borrow(MPI_INT32_T);
  if constexpr (std::is_same_v<T, std::int64_t>) return Datatype::borrow(MPI_INT64_T);
  return bytes_type(static_cast<std::int64_t>(sizeof(T)));
}

/// The same data with another extent: where the next element begins, in bytes.
Datatype resized_type(const Datatype& type, std::int64_t extent);

/// Triangular vector type ("Isomorphic, Sparse MPI-like Collective Communication Operations", section 8).
///
/// `count` blocks; block i has firstblock + i*blockincrement elements and starts at element
/// i*(stride + strideincrement). Increments and strides may be negative; a block of zero elements is allowed.
/// Throws UsageError for count < 0 or a negative block length. Not collective.
Datatype triangular_type(std::int64_t count, std::int64_t firstblock, std::int64_t blockincrement,
                         std::int64_t stride, std::int64_t strideincrement, MPI_Datatype element);

/// The cells of `region` in an array whose element of cell `origin` lies at the buffer address and whose neighbor
/// in dimension j lies stride[j] elements further (strides may be padded, permuted or negative).
///
/// The order of the elements depends on the region alone, so sender and receiver may lay out their arrays
/// differently. Space: O(1) for boxes, O(depth^(cuts-1)) for simplex prisms, independent of the full extents. All
/// counts and displacements are 64 bit. Not collective. Throws MpiError.
template <int D>
Datatype region_type(const Region<D>& region, const Index<D>& origin, const Index<D>& stride, MPI_Datatype element);

/// Several types at the same buffer address, one after the other.
Datatype joined_type(std::span<const Datatype> parts);

}  // namespace isohalo
