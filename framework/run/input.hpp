#pragma once
/// A whole input, read and checked but for what depends on the ranks' memory and on files.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/run/config.hpp"
#include "framework/run/initial.hpp"
#include "framework/run/settings.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

template <int D>
struct Input {
  GridSettings<D> grid;
  ParallelSettings<D> parallel;
  RunSettings run;
  OutputSettings output;
  std::unique_ptr<SolverModel<D>> model;
  std::vector<InitialField<D>> initial;  ///< in the order of the model's fields
  std::optional<InitialField<D>> source;
};

/// Asks for every key that an input with these values can have. Errors stay in the configuration, whose `finish`
/// throws them. `file`: path of the input; `ranks`: of the run. Local.
template <int D>
Input<D> read_input(Config& config, const SolverKinds& kinds, const std::string& file, int ranks);

}  // namespace isohalo
