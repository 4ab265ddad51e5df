#pragma once
/// The fields of a solver with fields on faces.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "framework/domain/boundary_rules.hpp"

namespace isohalo {

/// Those in cells, then one on the faces of each dimension; and the coefficients that are fields.
template <int D>
struct StaggeredFields {
  std::vector<std::string> state, coefficients;
  std::vector<BoundaryRules<D>> rules;  ///< of the state
  double dt = 0;

  std::size_t cells() const { return state.size() - D; }
  /// The dimension on whose faces field f of the state lies; -1: in cells.
  int face_of(std::size_t f) const { return std::max(-1, static_cast<int>(f) - static_cast<int>(cells())); }
  std::span<const BoundaryRules<D>> rules_of_cells() const { return std::span(rules).first(cells()); }
  std::span<const BoundaryRules<D>> rules_of_faces() const { return std::span(rules).subspan(cells()); }
};

}  // namespace isohalo
