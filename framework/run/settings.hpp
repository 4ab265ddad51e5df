#pragma once
/// [domain], [parallel], [run] and [output] of an input, read and checked.

#include <filesystem>
#include <optional>
#include <string>

#include "framework/run/config.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// The number of dimensions that domain.shape has, 1..4; when the shape is wrong, the number that its list or
/// another list of [domain] has, so that the other keys are read and all errors come at once. Throws UsageError at
/// once for more than 4.
int read_dimensions(Config& config);

/// The values that domain.type may have with this kind of solver, the default first.
std::vector<std::string> read_types(const SolverKinds& kinds, const std::string& kind);

/// `types`: the values that domain.type may have, the default first.
template <int D>
GridSettings<D> read_grid(Config& config, const std::vector<std::string>& types);

/// Records an error at `path` unless `value` is finite in the field's type.
void check_in_type(Config& config, const std::string& path, const std::string& what, double value,
                   ElementType type);

/// `fixed` values and words of a side as canonical text: "neumann", {dirichlet = 1}.
std::string canonical(const BoundaryRule& rule);

template <int D>
struct ParallelSettings {
  std::optional<PerDim<int, D>> process_grid;  ///< absent: auto
  std::optional<int> halo_depth;               ///< steps per exchange; absent: auto
  Exchange exchange = Exchange::automatic;
  double alignment_tolerance = 0.02;
  ReductionOptions reduction;
  bool reduction_is_auto = true;  ///< then a restart keeps the checkpoint's method
};

/// `ranks`: of the run, which a schedule must fit.
template <int D>
ParallelSettings<D> read_parallel(Config& config, int ranks);

struct RunSettings {
  std::int64_t steps = 0;
  double stop_residual = 0;
  std::int64_t residual_every = 10;
  double time_limit_s = 0;
};

RunSettings read_run(Config& config);

struct OutputSettings {
  std::filesystem::path directory;
  std::int64_t checkpoint_every = 0, picture_every = 0, digest_every = 0;
  bool final_checkpoint = true;
  std::int64_t keep = 0;
  bool xdmf = true;
  std::string picture_field;
};

OutputSettings read_output(Config& config, const std::string& input_name, const std::vector<std::string>& fields);

/// The effective keys with which, given to an empty input, the run can be repeated.
std::map<std::string, std::string> repeatable(const Config& config);

/// The canonical text of what decides the numbers: the effective [domain], [solver], [initial], [source].
std::string physics_text(const Config& config);

}  // namespace isohalo
