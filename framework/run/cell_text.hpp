#pragma once
/// How messages name a cell of the grid.

#include <string>

#include "datatypes/box.hpp"

namespace isohalo {

/// "linear index 37, cell (3, 4)", of a cell of `global`. Local.
template <int D>
std::string cell_text(const Box<D>& global, std::int64_t linear) {
  const Index<D> i = index_of_linear(global, linear);
  std::string text = "linear index " + std::to_string(linear) + ", cell (";
  for (int j = 0; j < D; ++j) text += (j ? ", " : "") + std::to_string(i[j]);
  return text + ")";
}

}  // namespace isohalo
