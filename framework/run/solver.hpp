#pragma once
/// What the stepping loop knows of a solver. Solvers live in `stencils`; the loop does not know which there are.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/domain/boundary_rules.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/exchange.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "framework/io/field_handle.hpp"
#include "framework/run/config.hpp"

namespace isohalo {

enum class ElementType { float64, float32, uint8 };

/// [domain] of the input.
template <int D>
struct GridSettings {
  Index<D> shape{};
  PerDim<double, D> length{}, origin{}, spacing{};
  BoundaryRules<D> boundary;
  ElementType type = ElementType::float64;

  /// Centre of cell x of dimension j.
  double centre(int j, std::int64_t x) const { return origin[j] + (static_cast<double>(x) + 0.5) * spacing[j]; }
};

/// A solver with its fields in memory.
template <int D>
class Solver {
 public:
  virtual ~Solver() = default;
  /// The fields, the first of which is the default for pictures. They keep their names; their arrays may move at
  /// every `advance`.
  virtual std::vector<FieldHandle<D>> fields() = 0;
  /// To be called after owned cells were written through `fields()`.
  virtual void fields_changed() = 0;
  /// Advances by `steps` >= 1. With `change`, returns the change sum of the last step, the same bits on all ranks.
  /// Collective. Fences.
  virtual double advance(std::int64_t steps, bool change) = 0;
  /// How the ghost cells travelled in the latest exchange, and the times that decided it.
  virtual ExchangeChoice exchange() const = 0;
  /// The tile of the reductions behind `advance`.
  virtual Index<D> tile() const = 0;
};

/// A solver's part of the input, read and checked, before any memory is taken.
template <int D>
class SolverModel {
 public:
  virtual ~SolverModel() = default;
  virtual std::vector<std::string> field_names() const = 0;
  virtual StencilShape<D> shape() const = 0;
  /// Length of a step; 0 for solvers without time.
  virtual double dt() const = 0;
  /// Bytes of memory for a block of these extents with the ghost layers of `depth` steps.
  virtual double memory(const Index<D>& extents, int depth) const = 0;
  /// Collective in order. `depth` >= 1 steps per halo exchange, which travels by `exchange`.
  virtual std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth,
                                            Exchange exchange) const = 0;
};

/// Reads the keys of one kind of solver; records errors in the configuration rather than throwing.
template <int D>
using ModelMaker = std::function<std::unique_ptr<SolverModel<D>>(Config&, const GridSettings<D>&)>;

/// The kinds of solvers there are, by `solver.kind`, for each number of dimensions.
struct SolverKinds {
  std::map<std::string, ModelMaker<1>> one;
  std::map<std::string, ModelMaker<2>> two;
  std::map<std::string, ModelMaker<3>> three;
  std::map<std::string, ModelMaker<4>> four;

  template <int D>
  auto& of() {
    if constexpr (D == 1)
      return one;
    else if constexpr (D == 2)
      return two;
    else if constexpr (D == 3)
      return three;
    else
      return four;
  }
};

}  // namespace isohalo
