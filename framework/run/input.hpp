#pragma once
/// A whole input, read and checked but for what depends on the ranks' memory and on files.

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "framework/run/config.hpp"
#include "framework/run/halo_depth.hpp"
#include "framework/run/initial.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// [parallel]
template <int D>
struct ParallelSettings {
  std::optional<PerDim<int, D>> process_grid;  ///< absent: auto
  std::optional<int> halo_depth;               ///< steps per exchange; absent: auto
  Exchange exchange = Exchange::automatic;
  SweepSettings<D> sweeps;
  bool on_device = false;  ///< parallel.space
  double alignment_tolerance = 0.02;
  ReductionOptions reduction;
  bool reduction_is_auto = true;  ///< then a restart keeps the checkpoint's method
};

/// [run]
struct RunSettings {
  std::int64_t steps = 0;
  double stop_residual = 0;
  std::int64_t residual_every = 10;
  double time_limit_s = 0;
};

/// [output]
struct OutputSettings {
  std::filesystem::path directory;
  std::int64_t checkpoint_every = 0, picture_every = 0, digest_every = 0;
  bool final_checkpoint = true;
  std::int64_t keep = 0;
  bool xdmf = true;
  std::string picture_field;
};

template <int D>
struct Input {
  GridSettings<D> grid;
  ParallelSettings<D> parallel;
  RunSettings run;
  OutputSettings output;
  std::unique_ptr<SolverModel<D>> model;
  std::vector<InitialField<D>> initial;  ///< in the order of the model's fields
  std::optional<InitialField<D>> source;

  /// Steps per halo exchange on these blocks, fewest first; where there are several the first steps show which is
  /// the fastest, on the host.
  std::vector<int> depths(const Decomposition<D>& blocks) const {
    if (parallel.halo_depth) return {std::min(*parallel.halo_depth, model->deepest())};
    if (parallel.on_device) return {1};  // which has no time tiles
    return automatic_depths(*model, blocks, run.residual_every);
  }
  /// The most of these: fields have the ghosts for it.
  int deepest(const Decomposition<D>& blocks) const { return depths(blocks).back(); }
  /// The solver, its fields allocated on these blocks. Collective in order.
  std::unique_ptr<Solver<D>> solver(const CartesianDomain<D>& domain) const {
    const std::vector<int> depths = this->depths(domain.decomposition());
    auto made = model->create(domain, depths.back(), parallel.exchange, parallel.on_device);
    made->sweep_by(parallel.sweeps);
    if (depths.size() > 1) made->try_depths(depths);
    return made;
  }
  /// Bytes of memory for a block of these extents. On a device, which may have the host's memory, there are copies
  /// of the fields, and a double for each cell of a row of tiles of each change sum.
  double memory(const Index<D>& extents, int depth) const {
    const double fields = model->memory(extents, depth);
    if (!parallel.on_device) return fields;
    double lanes = sizeof(double) * static_cast<double>(model->field_names().size()) / (D == 1 ? 1 : 16);
    for (const std::int64_t n : extents) lanes *= static_cast<double>(n);
    return 2 * fields + lanes;
  }
  /// How its grid is cut.
  DomainOptions<D> domain_options() const {
    return {grid.boundary.periodic(), parallel.process_grid, parallel.alignment_tolerance, {}};
  }
  /// Is any field read from a file?
  bool from_files() const {
    bool any = source && source->from_file();
    for (const auto& field : initial) any = any || field.from_file();
    for (const auto* field : model->coefficients()) any = any || field->from_file();
    return any;
  }
  /// Throws UsageError, agreed, when such a file is unfit. Reads one value of each. Collective.
  void check_files(const Communicator& comm) const {
    for (const auto& field : initial) field.check_file(comm);
    if (source) source->check_file(comm);
    for (const auto* field : model->coefficients()) field->check_file(comm);
  }
};

/// The number of dimensions that domain.shape has, 1..4; when the shape is wrong, the number that its list or
/// another list of [domain] has, so that the other keys are read and all errors come at once. Throws UsageError at
/// once for more than 4.
int read_dimensions(Config& config);

/// Calls `f` with the dimensions of the input as a constant; throws as `read_dimensions`.
template <class F>
auto with_dimensions(Config& config, const F& f) {
  switch (read_dimensions(config)) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    default:
      return f(std::integral_constant<int, 4>());
  }
}

/// Asks for every key that an input with these values can have. Errors stay in the configuration, whose `finish`
/// throws them. `file`: path of the input; `ranks`: of the run. Local.
template <int D>
Input<D> read_input(Config& config, const SolverKinds& kinds, const std::string& file, int ranks);

/// The same; throws ErrorList for the errors.
template <int D>
Input<D> checked_input(Config& config, const SolverKinds& kinds, const std::string& file, int ranks) {
  Input<D> in = read_input<D>(config, kinds, file, ranks);
  config.finish();
  return in;
}

/// The effective keys with which, given to an empty input, the run can be repeated.
std::map<std::string, std::string> repeatable(const Config& config);

/// The canonical text of what decides the numbers: the effective [domain], [solver], [initial], [source].
std::string physics_text(const Config& config);

}  // namespace isohalo
