#pragma once
/// `--help-input`: every key there is, as the configuration declares them.

#include <string>

#include "framework/run/solver.hpp"

namespace isohalo {

/// All keys by table, with type, unit, range, default and meaning; those of each kind of solver and of initial
/// field under a heading of their own. Lists are shown for two dimensions. Local.
std::string help_input(const SolverKinds& kinds);

/// The same as tables in Markdown: the generated part of docs/input.md. Local.
std::string help_input_markdown(const SolverKinds& kinds);

/// The keys that an input with the values of `config` can have, and the values in force. `file`: its path; `ranks`:
/// of the run. Errors stay in the configuration, except for what `read_dimensions` throws. Local.
std::string help_input(const SolverKinds& kinds, Config& config, const std::string& file, int ranks);

}  // namespace isohalo
