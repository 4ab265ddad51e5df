#pragma once
/// The model of a solver with fields on faces: cell_solver.hpp says what it has.

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stencils/cell_settings.hpp"
#include "stencils/device/device_staggered.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/staggered_solver.hpp"

namespace isohalo {

namespace detail {

template <class S, int D>
class StaggeredModel : public SolverModel<D> {
 public:
  explicit StaggeredModel(CellSettings<S, D> in) : in_(std::move(in)), fields_(in_.staggered()) {}

  std::vector<std::string> field_names() const override { return fields_.state; }
  int face_of(std::size_t k) const override { return fields_.face_of(k); }
  StencilShape<D> shape() const override { return StencilShape<D>::star(1); }
  bool steps_in_tiles() const override { return true; }
  bool tries_depths() const override { return false; }
  /// Of a single step the fields in cells alone: the faces between two ranks are computed by both.
  ExchangeLoad<D> exchange_load(int depth) const override {
    return {{{{shape(), depth}, static_cast<int>(depth > 1 ? fields_.state.size() : fields_.cells())}}};
  }
  double dt() const override { return in_.dt; }
  std::string advice_not_finite() const override {
    return in_.advice_not_finite("use a smaller step, or smaller values in [initial] and domain.boundary");
  }
  double memory(const Index<D>& extents, int depth) const override {
    auto ghosts = shape().ghost_widths(depth, in_.grid.topology());
    for (std::int64_t& layers : ghosts[1]) ++layers;  // of faces
    return field_bytes<D>(in_.grid.type, extents, ghosts[0], ghosts[1]) *
               static_cast<double>(fields_.state.size() + fields_.coefficients.size()) +
           static_cast<double>(in_.kept()) * Field<double, D>::bytes_needed(extents, ghosts[0], ghosts[1]);
  }
  std::vector<const InitialField<D>*> coefficients() const override { return in_.coefficients(); }
  void check_coefficients(const CartesianDomain<D>& domain) const override { check_given(in_, domain); }
  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                    bool on_device) const override {
    return with_type<D>(in_.grid.type, on_device, [&]<class T, bool kDevice>(T, std::bool_constant<kDevice>) {
      using Made = std::conditional_t<kDevice, DeviceStaggered<S, T, D, DeviceSpace>, StaggeredSolver<S, T, D>>;
      return std::make_unique<Made>(in_, domain, depth, exchange);
    });
  }
  std::string against_device() const override {
    std::string why;
    for (const BoundaryRules<D>& rules : fields_.rules)
      if (why.empty()) why = rules_against_device(in_.grid.type, rules);
    return why;
  }

 private:
  CellSettings<S, D> in_;
  StaggeredFields<D> fields_;
};

/// The outermost faces follow from the cells or have given values; what else there is for cells says nothing of
/// them.
template <int D>
[[gnu::cold]] void check_sides_of(Config& config, const std::string& name, const BoundaryRules<D>& rules, int j) {
  for (const auto& [side, rule] : {std::pair{"low", &rules.low[j]}, std::pair{"high", &rules.high[j]}}) {
    const bool free = rule->kind == Boundary::neumann && !rule->has_gradient();
    if (free || rule->kind == Boundary::periodic || rule->kind == Boundary::dirichlet ||
        rule->kind == Boundary::fixed)
      continue;
    const std::string own = fmt::format("domain.boundary.{}.{}", name, side);
    config.error(
        config.has(own) ? own : fmt::format("domain.boundary.{}", side),
        fmt::format("{}: the faces at a side of dimension {} have no such rule: use \"neumann\" ({} follows "
                    "from the cells), {{dirichlet = VALUE}} or {{fixed = VALUE}} (it is given)",
                    own, j, name));
  }
}

/// Calls of a solver's functions, which can be asked for. (nvcc 13 ends when a requires-expression has them, and
/// loses packs of types by an alias.)
struct CallFace {
  template <class S, class... A>
  auto operator()(const S& s, const A&... a) const -> decltype(s.face(a...));
};
struct CallCells {
  template <class S, class... A>
  auto operator()(const S& s, const A&... a) const -> decltype(s(a...));
};
template <class U, std::size_t>
struct Each {
  using Type = U;
};

/// Can its functions be called, whatever they return?
template <class S, int D, std::size_t... F>
constexpr bool takes_places(std::index_sequence<F...>) {
  constexpr std::size_t n = kCoefficients<S, D>;
  using Here = HereCell<D>;
  using Faces = std::array<BothSides, D>;
  if constexpr (n > 0)
    return std::is_invocable_v<CallFace, S, HereFace<D>, typename Each<BothSides, F>::Type...,
                               std::array<BothSides, n>, double> &&
           std::is_invocable_v<CallCells, S, typename Each<Here, F>::Type..., Faces, std::array<Here, n>, double>;
  else
    return std::is_invocable_v<CallFace, S, HereFace<D>, typename Each<BothSides, F>::Type..., double> &&
           std::is_invocable_v<CallCells, S, typename Each<Here, F>::Type..., Faces, double>;
}

template <class S, int D>
[[gnu::cold]] std::unique_ptr<SolverModel<D>> make_staggered_model(Config& config, const GridSettings<D>& grid,
                                                                   const std::string& kind) {
  static_assert(
      takes_places<S, D>(std::make_index_sequence<kStateFields<S>>()),
      "a solver with `faces` has const templates face(q, u, .., [given,] dt) and operator()(u, .., q, [given,] "
      "dt), a parameter u for each of `fields`, `given` if there are coefficients");
  CellSettings<S, D> in = read_parameters<S>(config, grid, kind);
  read_coefficients_and_dt(config, in);
  const StaggeredFields<D> fields = in.staggered();
  for (int j = 0; j < D; ++j) {
    const std::size_t f = fields.cells() + static_cast<std::size_t>(j);
    check_sides_of(config, fields.state[f], fields.rules[f], j);
  }
  return std::make_unique<StaggeredModel<S, D>>(std::move(in));
}

}  // namespace detail

}  // namespace isohalo
