#pragma once
/// Digests: a commutative 64-bit sum over cells, the same for any decomposition (docs/model.md, "Digest, minimum,
/// maximum").

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
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

/// What a cell adds to its field's digest; `l` is its row-major linear index.
template <class T>
std::uint64_t cell_digest(T value, std::uint64_t l) {
  return mix64(std::bit_cast<DigestBits<T>>(value) + (l + 1) * kGolden);
}

/// What `n` adjacent cells add, at any address; the first has linear index `first`.
template <class T>
std::uint64_t cells_digest(const char* cells, std::int64_t n, std::int64_t first) {
  std::uint64_t sum = 0,
                place = (static_cast<std::uint64_t>(first) + 1) * kGolden;  // (l + 1) * kGolden, step by step
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

/// Digest, extremes and NaN count of the whole field, the same on all ranks. One pass. Collective.
template <int D>
FieldStatistics field_statistics(const CartesianDomain<D>& domain, const AnyArray<D>& array);

/// The same of cells that come piece by piece, each on one rank: as files hold them, or on their way to a file.
class StatisticsSum {
 public:
  StatisticsSum();
  StatisticsSum(const StatisticsSum&) = delete;
  StatisticsSum& operator=(const StatisticsSum&) = delete;
  ~StatisticsSum();
  /// `n` consecutive cells, the first with linear index `first`. T: double, float or std::uint8_t.
  template <class T>
  void add(const T* cells, std::int64_t n, std::int64_t first);
  /// Copies the cells of `box`, all owned, to `out` in index order, and adds them. Kokkos' host backend shares the
  /// rows.
  template <class T, int D>
  void pack(const Box<D>& global, const ArrayRef<T, D>& array, const Box<D>& box, T* out);
  /// Of the `cells` cells of all ranks, the same on all of them. Collective.
  FieldStatistics finish(const Communicator& comm, std::int64_t cells) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// 16 lower-case hex digits.
std::string hex_digest(std::uint64_t digest);
/// The inverse; throws UsageError for anything else than 16 hex digits.
std::uint64_t parse_digest(const std::string& text);

/// Digest of bytes, for texts: the field digest of the bytes as a uint8 array.
std::uint64_t bytes_digest(const void* data, std::size_t bytes);

}  // namespace isohalo
