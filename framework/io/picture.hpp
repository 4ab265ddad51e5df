#pragma once
/// A picture of a field: a PNG of the middle slice in the two fastest dimensions, in a perceptual colour map.

#include <filesystem>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/io/field_handle.hpp"

namespace isohalo {

/// Writes `file`. The slower dimensions are cut in the middle; slices beyond 1024 cells are thinned, small ones
/// enlarged, lines made strips; colours span the least to greatest finite value; NaN is red. The picture does not
/// depend on the ranks. `domain` is that of the field (see `field_domain`). Collective. Throws RunError, agreed.
template <int D>
void write_picture(const std::filesystem::path& file, const CartesianDomain<D>& domain, const AnyArray<D>& array);

/// Is it a regular file that begins as what `write_picture` writes, which other programs' pictures hardly do?
/// Local.
bool is_our_picture(const std::filesystem::path& file);

}  // namespace isohalo
