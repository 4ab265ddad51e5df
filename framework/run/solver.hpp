#pragma once
/// What the stepping loop knows of a solver. Solvers live in `stencils`; the loop does not know which there are.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/domain/boundary_rules.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/exchange.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "framework/io/field_handle.hpp"
#include "framework/reduce/reduction_options.hpp"
#include "framework/run/config.hpp"
#include "framework/run/phases.hpp"

namespace isohalo {

enum class ElementType { float64, float32, uint8 };

/// "float64", "float32", "uint8".
const char* type_name(ElementType type);

/// Values of cells that depend on the time, in binary64. Several threads may call it at once.
template <int D>
struct ValuesInTime {
  /// Gives those of the n cells from `first` on along the last dimension, from those of the `steady` parts there.
  using Row = std::function<void(const Index<D>& first, std::int64_t n, double time, const double* const* steady,
                                 double* values)>;
  /// What of them does not depend on the time and is worth keeping; it has no parts itself.
  struct Part {
    PerDim<bool, D> depends_on{};  ///< the place along these dimensions
    Row row;
  };
  static constexpr std::size_t kMostParts = 4;

  Row row;
  std::vector<Part> steady;
};

/// [domain] of the input.
template <int D>
struct GridSettings {
  Index<D> shape{};
  PerDim<double, D> length{}, origin{}, spacing{};
  BoundaryRules<D> boundary;
  /// Those of each state field of a solver of several; empty: all have those of the domain. Periodic dimensions are
  /// the same.
  std::vector<BoundaryRules<D>> field_boundaries;
  ElementType type = ElementType::float64;
  std::filesystem::path input_directory;  ///< where relative file names of the input start
  int face = -1;                          ///< see `on_faces`

  const BoundaryRules<D>& boundary_of(std::size_t field) const {
    return field_boundaries.empty() ? boundary : field_boundaries[field];
  }
  /// The boundaries of all fields as the geometry of halos sees them.
  BoundaryTopology<D> topology() const {
    const std::span<const BoundaryRules<D>> fields(field_boundaries);
    return boundary_topology_of(fields.empty() ? std::span(&boundary, 1) : fields, box_of_shape<D>(shape));
  }

  /// Is a boundary value given by an expression?
  bool has_boundary_expression() const {
    for (const auto& rules : field_boundaries.empty() ? std::vector{boundary} : field_boundaries)
      for (int j = 0; j < D; ++j)
        if (rules.low[j].expression || rules.high[j].expression) return true;
    return false;
  }

  /// Centre of cell x of dimension j; the place of face x where the grid is `on_faces` of j.
  double centre(int j, std::int64_t x) const {
    return origin[j] + (static_cast<double>(x) + (j == face ? 0.0 : 0.5)) * spacing[j];
  }
  /// The same for fields on the faces of a dimension: `shape` then counts these. -1: as it is.
  GridSettings on_faces(int dimension) const {
    GridSettings faces = *this;
    faces.face = dimension;
    if (dimension >= 0 && boundary.low[dimension].kind != Boundary::periodic) ++faces.shape[dimension];
    return faces;
  }
};

/// Records an error at `path` unless `value` is finite in the field's type; `what` it is, for the message.
void check_in_type(Config& config, const std::string& path, const std::string& what, double value,
                   ElementType type);

/// A state against run.stop_residual.
struct StopTest {
  bool reached = false;
  double value = 0;  ///< what the limit is for
  std::string name = "residual";
};

/// How steps go through memory, where that is not left to timing. No bit depends on it.
template <int D>
struct SweepSettings {
  std::optional<Index<D>> tile;    ///< cells of a time tile, one at least in each dimension
  std::optional<std::size_t> way;  ///< of sweeps outside tiles: Fetch::by_way
};

template <int D>
class InitialField;

/// A solver with its fields in memory.
template <int D>
class Solver {
 public:
  virtual ~Solver() = default;
  /// The fields, the first of which is the default for pictures. They keep their names; their arrays may move at
  /// every `advance`.
  virtual std::vector<FieldHandle<D>> fields() = 0;
  /// The field that [source] fills (owned cells), if the equation has one.
  virtual std::optional<FieldHandle<D>> source() { return std::nullopt; }
  /// The fields that the model's `coefficients` fill (owned cells), in that order. They are not stored.
  virtual std::vector<FieldHandle<D>> coefficients() { return {}; }
  /// How sums are carried out from now on: to be called before `start`, which may form the first. Collective.
  /// Throws UsageError, the same on all ranks.
  virtual void reduce_by(const ReductionOptions& options) = 0;
  /// The state is that of `step`, a step being `dt` long: said before `start` and before `fields_changed` of a
  /// restart. From then on the solver counts; it needs that for what depends on the time or on the step. Local.
  virtual void set_time(std::int64_t /*step*/, double /*dt*/) {}
  /// To be called when the initial fields and the source are in place, also before a restart. Collective. Throws
  /// UsageError, the same on all ranks, for values that the solver cannot begin with.
  virtual void start() { fields_changed(); }
  /// To be called after all fields were restored through `fields()`, after `start`. Collective.
  virtual void fields_changed() = 0;
  /// Advances by `steps` >= 1. With `change`, returns the change sum of the last step, the same bits on all ranks.
  /// Collective. Fences.
  virtual double advance(std::int64_t steps, bool change) = 0;
  /// Has the state reached `limit` (run.stop_residual)? `residual` is that of its step. Collective.
  virtual StopTest stop_test(double limit, double residual) { return {residual <= limit, residual}; }
  /// What the residual is the root mean square over the cells of.
  virtual std::string residual_of() const { return "the change of u"; }
  /// Steps per halo exchange, at present.
  virtual int depth() const { return 1; }
  /// From now on these depths, two or more, fewest first, of which the last is what it was created for, are tried
  /// out in the first steps, and the fastest is kept, the same on all ranks. To be called before `reduce_by`, where
  /// the model tries depths. Collective.
  virtual void try_depths(const std::vector<int>& /*depths*/) {}
  /// From now on sweeps go so, where this solver has such ways. To be called before the first step. Local.
  virtual void sweep_by(const SweepSettings<D>&) {}
  /// The clock that the solver's phases are to be charged to; it must live as long.
  virtual void time_phases(PhaseClock*) {}
  /// How the ghost cells travelled in the latest exchange, and the times that decided it.
  virtual ExchangeChoice exchange() const = 0;
  /// How steps go through memory, by parallel.sweeps and parallel.tile or by what was tried out; empty: in one way.
  virtual std::string sweeps() const { return {}; }
  /// The tile of the reductions behind `advance`.
  virtual Index<D> tile() const = 0;
};

/// What the steps that go with the same ghosts exchange.
template <int D>
struct ExchangeLoad {
  /// `count` arrays of the field's type that each need these ghosts.
  struct Arrays {
    HaloNeed<D> need;
    int count = 1;
  };
  std::vector<Arrays> arrays;  ///< at least one entry; all needs are as deep
  int times = 1;               ///< exchanges
};

/// A solver's part of the input, read and checked, before any memory is taken.
template <int D>
class SolverModel {
 public:
  virtual ~SolverModel() = default;
  /// The fields that [initial] fills: the first of the solver's fields.
  virtual std::vector<std::string> field_names() const = 0;
  /// The dimension on whose faces field k of these lies; -1: in cells.
  virtual int face_of(std::size_t /*k*/) const { return -1; }
  /// Does [source] fill a field?
  virtual bool has_source() const { return false; }
  /// What fills the solver's coefficients; they live as long as the model.
  virtual std::vector<const InitialField<D>*> coefficients() const { return {}; }
  /// Throws UsageError, the same on all ranks, for coefficients that the solver cannot have or that its step is too
  /// long for, before it is created. Takes the memory of a piece of a file. Collective.
  virtual void check_coefficients(const CartesianDomain<D>& /*domain*/) const {}
  /// Steps per halo exchange that the solver can make use of.
  virtual int deepest() const { return std::numeric_limits<int>::max(); }
  /// Does it make several steps without a sum over all cells in between, in time tiles? Else halo_depth = "auto" is
  /// 1, as it is in caches for those that do not try out depths.
  virtual bool steps_in_tiles() const { return false; }
  virtual bool tries_depths() const { return steps_in_tiles(); }
  virtual StencilShape<D> shape() const = 0;
  /// What `depth` steps exchange, for plans.
  virtual ExchangeLoad<D> exchange_load(int depth) const { return {{{{shape(), depth}}}}; }
  /// Length of a step; 0 for solvers without time.
  virtual double dt() const = 0;
  /// What to change in the input when the fields have become NaN or infinite, as the end of a sentence; empty: the
  /// solver has no advice.
  virtual std::string advice_not_finite() const { return {}; }
  /// Bytes of memory for a block of these extents with the ghost layers of `depth` steps.
  virtual double memory(const Index<D>& extents, int depth) const = 0;
  /// Fields in a checkpoint.
  virtual int stored_fields() const { return static_cast<int>(field_names().size()); }
  /// Collective in order. `depth` >= 1 steps per halo exchange, which travels by `exchange`. `on_device`, unless
  /// `against_device` says why not: with its fields in the memory of Kokkos' default execution space, and the same
  /// bits.
  virtual std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                            bool on_device) const = 0;
  /// Why it has nothing for parallel.space = "device", as the end of a sentence; empty: it has.
  virtual std::string against_device() const { return "solvers of this kind compute on the host only"; }
};

/// Reads the keys of one kind of solver; records errors in the configuration rather than throwing.
template <int D>
using ModelMaker = std::function<std::unique_ptr<SolverModel<D>>(Config&, const GridSettings<D>&)>;

/// "periodic", "neumann", "dirichlet", "fixed" and "robin".
std::vector<BoundaryKind> shipped_boundaries();

/// The kinds of solvers there are, by `solver.kind`, for each number of dimensions.
struct SolverKinds {
  template <int D>
  using Makers = std::map<std::string, ModelMaker<D>>;
  std::tuple<Makers<1>, Makers<2>, Makers<3>, Makers<4>> makers;
  /// The values of domain.type that a kind has, the default first; kinds that are not here have float64 and
  /// float32.
  std::map<std::string, std::vector<std::string>> types;
  /// The state fields of kinds that have several, in order, by the number of dimensions: each may have boundary
  /// rules of its own.
  std::map<std::string, std::function<std::vector<std::string>(int dimensions)>> fields;
  /// The boundary rules there are.
  std::vector<BoundaryKind> boundaries = shipped_boundaries();

  /// Makes make(Config&, const GridSettings<D>&) the maker of models of this kind, for each number of dimensions
  /// that it takes. Throws UsageError where there is one.
  template <class Make>
  void add(const std::string& kind, const Make& make) {
    [&]<int... D>(std::integer_sequence<int, D...>) {
      static_assert((fits<Make, D + 1> || ...),
                    "a maker takes (Config&, const GridSettings<D>&) of some dimension");
      (add_in_dimension<D + 1>(kind, make), ...);
    }
    (std::make_integer_sequence<int, 4>());
  }

  template <int D>
  const Makers<D>& of() const {
    return std::get<D - 1>(makers);
  }
  template <int D>
  Makers<D>& of() {
    return std::get<D - 1>(makers);
  }

 private:
  template <class Make, int D>
  static constexpr bool fits = std::is_invocable_v<Make, Config&, const GridSettings<D>&>;
  template <int D, class Make>
  void add_in_dimension(const std::string& kind, const Make& make) {
    if constexpr (fits<Make, D>)
      if (!of<D>().try_emplace(kind, make).second)
        throw UsageError("there are two solvers of the name \"" + kind + "\": give yours another one");
  }
};

/// Throws UsageError for a name of a solver, a field, a key or a rule that is no word of letters, digits and _:
/// input files could not have it. `what` has that name. Local.
void check_input_word(const std::string& what, const std::string& word);
/// Is it one?
bool is_input_word(std::string_view text);

/// Makes a rule of one's own known to input files. Local. Throws UsageError for a name or a key that there is
/// twice, that is no word, and for a rule without its function.
void add_boundary_rule(SolverKinds& kinds, const BoundaryKind& rule);

}  // namespace isohalo
