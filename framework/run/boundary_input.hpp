#pragma once
/// [domain.boundary] of the input: rules as text and as values.

#include <span>
#include <string>
#include <vector>

#include "framework/run/config.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// Reads domain.boundary.low and .high and, of a solver of several `fields`, domain.boundary.FIELD.low and .high
/// into `grid`, whose shape, origin, length and type are known. Errors stay in the configuration; then all is
/// periodic.
template <int D>
void read_boundaries(Config& config, const std::vector<BoundaryKind>& kinds, const std::vector<std::string>& fields,
                     GridSettings<D>& grid);

}  // namespace isohalo
