#pragma once
/// Lists of relative offsets: the neighborhoods of isomorphic communication and the shapes of stencils.
/// Pure; the order of a list matters and is part of its meaning.

#include <vector>

#include "datatypes/box.hpp"

namespace isohalo {

template <int D>
using Offsets = std::vector<Index<D>>;

enum class Self { leave_out, include };

/// Chebyshev distance at most `radius`, row-major. Throws UsageError for a negative radius, as the others, or a
/// cube of more than 2^24 offsets, as all but `star`.
template <int D>
Offsets<D> moore(int radius, Self self);

/// Manhattan distance at most `radius`, row-major.
template <int D>
Offsets<D> von_neumann(int radius, Self self);

/// On one axis only, at most `radius` away, row-major.
template <int D>
Offsets<D> star(int radius, Self self);

/// Flat list of all offsets of Chebyshev length (`manhattan`: Manhattan length) at most `radius`, row-major, in any
/// number of dimensions.
std::vector<int> ball_offsets(int dimensions, int radius, bool manhattan, Self self);

/// The coordinates of all offsets, dimension 0 of each first.
template <int D>
std::vector<int> flat(const Offsets<D>& list) {
  std::vector<int> coordinates;
  coordinates.reserve(list.size() * D);
  for (const auto& offset : list)
    for (int j = 0; j < D; ++j) coordinates.push_back(static_cast<int>(offset[j]));
  return coordinates;
}

}  // namespace isohalo
