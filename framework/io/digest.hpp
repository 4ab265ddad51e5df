#pragma once
/// Digests: a commutative 64-bit sum over cells, the same for any decomposition (docs/model.md, "Digest, minimum,
/// maximum").

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "datatypes/mix.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/io/field_handle.hpp"

namespace isohalo {

/// The unsigned integer as wide as a value.
template <class T>
using DigestBits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                      std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint8_t>>;

/// What `n` adjacent cells, at any address, add to their field's digest: mix64(bits + (l + 1) * kGolden) each, with
/// the row-major linear index l, which is `first` for the first of them.
template <class T>
std::uint64_t cells_digest(const char* cells, std::int64_t n, std::int64_t first) {
  std::uint64_t sum = 0, place = (static_cast<std::uint64_t>(first) + 1) * kGolden;
  for (std::int64_t k = 0; k < n; ++k, place += kGolden) {
    DigestBits<T> bits;
    std::memcpy(&bits, cells + k * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    sum += mix64(bits + place);
  }
  return sum;
}

/// What a pass over a field finds. min and max order -0 below +0 and leave NaN out; without any number they are the
/// quiet NaN 0x7ff8000000000000.
struct FieldStatistics {
  std::uint64_t digest = 0;
  double min = 0, max = 0;
  std::int64_t nan_count = 0;
  std::int64_t first_not_finite = -1;  ///< lowest linear index of a NaN or infinity, -1 if none
};

/// Digest, extremes and NaN count of the whole field, in cells or on the faces of a dimension, the same on all
/// ranks. One pass. Collective.
template <int D>
FieldStatistics field_statistics(const CartesianDomain<D>& domain, const AnyArray<D>& array, int face = -1);

/// The same of cells that come part by part, each on one rank: as files hold them, or on their way to a file.
/// Joins are exact, so no order matters.
class StatisticsSum {
 public:
  /// `n` consecutive cells, the first with linear index `first`. T: double, float or std::uint8_t.
  template <class T>
  void add(const T* cells, std::int64_t n, std::int64_t first);
  /// The cells of `box`, all owned; with `out` they are also copied there, in index order. Kokkos' host backend
  /// shares the rows.
  template <class T, int D>
  void pack(const Box<D>& global, const ArrayRef<T, D>& array, const Box<D>& box, T* out);
  /// Of the `cells` cells of all ranks, the same on all of them. Collective.
  FieldStatistics finish(const Communicator& comm, std::int64_t cells) const;

  constexpr StatisticsSum& operator+=(const StatisticsSum& o) {
    digest_ += o.digest_;
    least_ = std::min(least_, o.least_);
    greatest_ = std::max(greatest_, o.greatest_);
    nans_ += o.nans_;
    odd_ = std::min(odd_, o.odd_);
    return *this;
  }

 private:
  /// Without the digest.
  void note(double v, std::int64_t at);

  std::uint64_t digest_ = 0;
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();  ///< and greatest: integers that order like the
  std::int64_t greatest_ = std::numeric_limits<std::int64_t>::min();  ///< numbers, -0 below +0
  std::int64_t nans_ = 0;
  std::int64_t odd_ = std::numeric_limits<std::int64_t>::max();  ///< first index that is not finite
};

/// 16 lower-case hex digits.
std::string hex_digest(std::uint64_t digest);
/// The inverse; throws UsageError for anything else than 16 hex digits.
std::uint64_t parse_digest(const std::string& text);

/// Digest of bytes, for texts: the field digest of the bytes as a uint8 array.
std::uint64_t bytes_digest(const void* data, std::size_t bytes);

}  // namespace isohalo
