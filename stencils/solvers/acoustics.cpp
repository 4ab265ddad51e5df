/// kind = "acoustics": its part of the input.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "stencils/single_field_model.hpp"
#include "stencils/solvers.hpp"
#include "stencils/solvers/acoustics_solver.hpp"
#include "stencils/time_step.hpp"

namespace isohalo {

namespace {

template <int D>
class AcousticsModel : public SolverModel<D> {
 public:
  explicit AcousticsModel(const AcousticsEquation<D>& equation) : equation_(equation) {}

  std::vector<std::string> field_names() const override { return acoustics_fields(D); }
  int face_of(std::size_t k) const override { return static_cast<int>(k) - 1; }
  StencilShape<D> shape() const override { return StencilShape<D>::star(1); }
  /// Of a single step the pressure alone: the faces between two ranks are computed by both.
  ExchangeLoad exchange_load(int depth) const override { return {depth > 1 ? 1 + D : 1, depth, 1}; }
  double dt() const override { return equation_.dt; }
  std::string advice_not_finite() const override { return "use smaller values in [initial] and domain.boundary"; }

  double memory(const Index<D>& extents, int depth) const override {
    auto ghosts = shape().ghost_widths(depth, equation_.grid.topology());
    for (std::int64_t& layers : ghosts[1]) ++layers;  // of faces
    return field_bytes<D>(equation_.grid.type, extents, ghosts[0], ghosts[1]) *
           static_cast<double>(1 + D + equation_.given.size());
  }

  std::vector<const InitialField<D>*> coefficients() const override {
    std::vector<const InitialField<D>*> all;
    for (const auto& field : equation_.given) all.push_back(&field);
    return all;
  }

  void check_coefficients(const CartesianDomain<D>& domain) const override {
    if (equation_.given.empty()) return;
    const Extremes density = checked("density", equation_.given[0], domain);
    const Extremes modulus = checked("bulk_modulus", equation_.given[1], domain);
    const double limit = equation_.stable_dt(density.least, modulus.largest);
    if (!(equation_.dt <= limit))
      throw UsageError("solver.dt = " + Config::canonical(equation_.dt) + " is above the stability limit " +
                       Config::canonical(limit) + " of acoustics with these coefficients: use a smaller one");
  }
  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                    bool on_device) const override {
    const auto make = [&]<class T>(T, auto device) -> std::unique_ptr<Solver<D>> {
      if constexpr (device())
        return make_acoustics_on_device<T>(domain, equation_, depth, exchange);
      else
        return std::make_unique<AcousticsSolver<T, D>>(domain, equation_, depth, exchange);
    };
    return with_type<D>(equation_.grid.type, on_device, make);
  }
  std::string against_device() const override {
    std::string why = rules_against_device(equation_.grid.type, equation_.pressure_rules());
    for (int j = 0; j < D && why.empty(); ++j)
      why = rules_against_device(equation_.grid.type, equation_.velocity_rules(j));
    return why;
  }

 private:
  static Extremes checked(const char* name, const InitialField<D>& given, const CartesianDomain<D>& domain) {
    const Extremes e = given.extremes(domain);
    if (!(e.least > 0))
      throw UsageError(fmt::format(
          "the coefficient \"{}\" has values from {} to {}: solver.{} must be above 0 everywhere, in the type "
          "of the fields",
          name, Config::canonical(e.least), Config::canonical(e.largest), name));
    return e;
  }

  AcousticsEquation<D> equation_;
};

/// The outermost faces follow from the pressure or have given values; what else there is for cells says nothing of
/// them.
template <int D>
void check_sides_of(Config& config, const AcousticsEquation<D>& equation, int j) {
  const BoundaryRules<D>& rules = equation.velocity_rules(j);
  for (const auto& [side, rule] : {std::pair{"low", &rules.low[j]}, std::pair{"high", &rules.high[j]}}) {
    const bool free = rule->kind == Boundary::neumann && !rule->has_gradient();
    if (free || rule->kind == Boundary::periodic || rule->kind == Boundary::dirichlet ||
        rule->kind == Boundary::fixed)
      continue;
    const std::string own = fmt::format("domain.boundary.v{}.{}", j, side);
    config.error(
        config.has(own) ? own : fmt::format("domain.boundary.{}", side),
        fmt::format("{}: the faces at a side of dimension {} have no such rule: use \"neumann\" (v{} follows "
                    "from the pressure), {{dirichlet = VALUE}} or {{fixed = VALUE}} (it is given)",
                    own, j, j));
  }
}

/// The numbers, or both as fields where one of them is a table.
template <int D>
void read_coefficients(Config& config, AcousticsEquation<D>& equation) {
  std::optional<InitialField<D>> fields[2];
  const auto read = [&](const char* name, double& number, const char* unit, const char* help,
                        std::optional<InitialField<D>>& field) {
    const std::string path = std::string("solver.") + name;
    if (config.has_table(path))
      field = InitialField<D>::read_table(config, equation.grid, path);
    else
      number = config.number(path,
                             {1.0, 0, 1e300, true, unit,
                              fmt::format("{}; a number, or a table [{}] with the keys of [initial]", help, path)});
  };
  read("density", equation.density, "mass / length^d", "density rho in rho v_t = -grad(p)", fields[0]);
  read("bulk_modulus", equation.bulk_modulus, "pressure", "bulk modulus K in p_t = -K div(v)", fields[1]);
  if (!fields[0] && !fields[1]) return;
  const auto constant = [&](const char* path, double number) {
    check_in_type(config, path, "the coefficient", number, equation.grid.type);
    return InitialField<D>::coefficient(
        equation.grid, path, [number](const Index<D>&) { return number; }, number);
  };
  equation.given.push_back(fields[0] ? *fields[0] : constant("solver.density", equation.density));
  equation.given.push_back(fields[1] ? *fields[1] : constant("solver.bulk_modulus", equation.bulk_modulus));
}

template <int D>
void read_dt(Config& config, AcousticsEquation<D>& equation) {
  if (!equation.given.empty() && !config.has("solver.dt") && !config.has_errors())
    config.error("solver.dt",
                 "required key solver.dt is missing: the stability limit is not known before the values of "
                 "solver.density and solver.bulk_modulus are");
  const double limit = equation.given.empty() ? equation.stable_dt(equation.density, equation.bulk_modulus)
                                              : std::numeric_limits<double>::infinity();
  equation.dt =
      read_time_step(config, limit, "1 / (c sqrt(1/h_0^2 + 1/h_1^2 + ..)), c = sqrt(bulk_modulus / density)",
                     "1/(c sqrt(sum_j 1/h_j^2)), c = sqrt(bulk_modulus / density)");
  if (config.has_errors() || !equation.given.empty()) return;
  for (int j = 0; j < D; ++j) {
    if (equation.dt > 0 && std::isfinite(equation.a(j)) && std::isfinite(equation.b(j))) continue;
    return config.error("solver.bulk_modulus",
                        fmt::format("with solver.density = {:g} and solver.bulk_modulus = {:g} a step of dt = {:g} "
                                    "is out of range of float64: use other units",
                                    equation.density, equation.bulk_modulus, equation.dt));
  }
}

template <int D>
std::unique_ptr<SolverModel<D>> make_acoustics_model(Config& config, const GridSettings<D>& grid) {
  AcousticsEquation<D> equation{grid};
  read_coefficients(config, equation);
  read_dt(config, equation);
  for (int j = 0; j < D; ++j) check_sides_of(config, equation, j);
  return std::make_unique<AcousticsModel<D>>(equation);
}

}  // namespace

void add_acoustics(SolverKinds& kinds) {
  kinds.add("acoustics",
            []<int D>(Config& config, const GridSettings<D>& grid) { return make_acoustics_model(config, grid); });
  kinds.fields["acoustics"] = acoustics_fields;
}

}  // namespace isohalo
