#pragma once
/// How messages name a cell of the grid.

#include <string>

#include "datatypes/box.hpp"

namespace isohalo {

/// "linear index 37, cell (3, 4)", of a cell of `global`; with `face`, of a face of that dimension. Local.
template <int D>
std::string cell_text(const Box<D>& global, std::int64_t linear, int face = -1) {
  const std::string kind = face < 0 ? "cell " : "face of dimension " + std::to_string(face) + " ";
  return "linear index " + std::to_string(linear) + ", " + kind + to_string<D>(index_of_linear(global, linear));
}

}  // namespace isohalo
