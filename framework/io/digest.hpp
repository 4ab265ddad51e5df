#pragma once
/// Digests: a commutative 64-bit sum over cells, the same for any decomposition (model.md, "Digest").

#include <cstdint>
#include <string>

#include "datatypes/mix.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/io/field_handle.hpp"

namespace isohalo {

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

/// 16 lower-case hex digits.
std::string hex_digest(std::uint64_t digest);
/// The inverse; throws UsageError for anything else than 16 hex digits.
std::uint64_t parse_digest(const std::string& text);

/// Digest of bytes, for texts: the field digest of the bytes as a uint8 array.
std::uint64_t bytes_digest(const void* data, std::size_t bytes);

}  // namespace isohalo
