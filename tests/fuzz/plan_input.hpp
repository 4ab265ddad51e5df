#pragma once
/// The whole way of an input file: text, overrides, the keys of every solver, the grid and the plan.

#include <string>
#include <vector>

namespace isohalo::fuzz {

/// Reads it as a run would, up to where memory would be taken, and plans it for `ranks` ranks. Throws Error.
void plan_input(const std::string& text, const std::vector<std::string>& overrides, int ranks);

}  // namespace isohalo::fuzz
