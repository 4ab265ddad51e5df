/// kind = "poisson": -laplace(u) = f by Jacobi steps and their relatives, or by conjugate gradients.

#include <fmt/format.h>

#include <cmath>

#include "stencils/chebyshev_solver.hpp"
#include "stencils/device/device_path.hpp"
#include "stencils/host_conjugate_gradients.hpp"
#include "stencils/jacobi_solver.hpp"
#include "stencils/red_black_solver.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {

namespace {

template <int D>
class PoissonModel : public SolverModel<D> {
 public:
  explicit PoissonModel(const PoissonEquation<D>& equation) : equation_(equation), method_(equation.method) {}

  std::vector<std::string> field_names() const override { return {"u"}; }
  bool has_source() const override { return true; }
  /// Two half steps of red_black read two cells away; a side of one cell is no limit to them, since outside cells
  /// follow from the cell beside them.
  StencilShape<D> shape() const override {
    const auto& low = equation_.grid.boundary.low;
    bool wide = method_ == PoissonMethod::red_black;
    for (int j = 0; j < D; ++j) wide = wide && (low[j].kind == Boundary::periodic || equation_.grid.shape[j] > 1);
    return wide ? StencilShape<D>::von_neumann(2) : StencilShape<D>::star(1);
  }
  ExchangeLoad<D> exchange_load(int depth) const override {
    return {{{{shape(), depth}, method_ == PoissonMethod::chebyshev && depth > 1 ? 2 : 1}}};
  }
  double dt() const override { return 0; }
  int stored_fields() const override {
    return method_ == PoissonMethod::cg ? 3 : method_ == PoissonMethod::chebyshev ? 2 : 1;
  }
  int deepest() const override { return method_ == PoissonMethod::cg ? 1 : SolverModel<D>::deepest(); }

  bool steps_in_tiles() const override { return method_ == PoissonMethod::jacobi && !equation_.singular(); }

  std::string advice_not_finite() const override {
    if (method_ == PoissonMethod::jacobi && equation_.omega > 1)
      return fmt::format("damped Jacobi steps may diverge with solver.omega = {:g}: use at most 1",
                         equation_.omega);
    if (method_ == PoissonMethod::red_black && equation_.omega > 1 && colours_meet(equation_.grid))
      return fmt::format(
          "across the ends of a periodic dimension with an odd number of cells two cells of one colour are "
          "neighbors, and steps may diverge with solver.omega = {:g}: leave it out, or use even numbers of cells",
          equation_.omega);
    if (method_ == PoissonMethod::chebyshev)
      return fmt::format(
          "steps diverge when eigenvalues of -laplace lie above solver.lambda_high = {:g}: leave it out",
          equation_.lambda_high);
    return "use smaller values in [initial], [source] and domain.boundary";
  }

  /// u, its successor and f; for red_black that removes a mean u as it was, too; or u, r, p and f. One more while
  /// the first residual is formed, with given gradients alone two.
  double memory(const Index<D>& extents, int depth) const override {
    const bool keeps_before = method_ == PoissonMethod::red_black && equation_.singular();
    const int fields = method_ == PoissonMethod::cg || keeps_before ? 5 : 4;
    const auto ghosts = StencilShape<D>::star(1).ghost_widths(
        method_ == PoissonMethod::red_black ? 2 * depth : depth, equation_.grid.topology());
    return (fields + equation_.singular_with_gradient()) *
           field_bytes<D>(equation_.grid.type, extents, ghosts[0], ghosts[1]);
  }

  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                    bool on_device) const override {
    const auto make = [&]<class T>(T, auto device) -> std::unique_ptr<Solver<D>> {
      if constexpr (device()) return make_poisson_on_device<T>(domain, equation_, depth, exchange);
      switch (method_) {
        case PoissonMethod::cg:
          return std::make_unique<HostConjugateGradients<T, D>>(domain, equation_, exchange);
        case PoissonMethod::red_black:
          return std::make_unique<RedBlackSolver<T, D>>(domain, equation_, depth, exchange);
        case PoissonMethod::chebyshev:
          return std::make_unique<ChebyshevSolver<T, D>>(domain, equation_, depth, exchange);
        default:
          return std::make_unique<JacobiSolver<T, D>>(domain, equation_, depth, exchange);
      }
    };
    return with_type<D>(equation_.grid.type, on_device, make);
  }
  std::string against_device() const override { return without_device_path<D>(equation_.grid.type); }

 private:
  PoissonEquation<D> equation_;
  PoissonMethod method_;
};

/// 1/h^2, the diagonal, and for chebyshev what r is multiplied by, must be numbers of the field's type.
template <int D>
void check_coefficients(Config& config, const PoissonEquation<D>& equation) {
  if (config.has_errors()) return;
  const auto stored = [&](double v) {
    return equation.grid.type == ElementType::float32 ? static_cast<double>(static_cast<float>(v)) : v;
  };
  const auto fits = [&](double v) { return std::isfinite(stored(v)) && stored(v) > 0; };
  const char* const type = type_name(equation.grid.type);
  const PerDim<double, D> q = equation.template q<double>();
  for (int j = 0; j < D; ++j)
    if (!std::isfinite(stored(q[j])))
      return config.error("domain.length", fmt::format("1/h^2 = {:g} of dimension {} is out of range of {}: use "
                                                       "larger cells",
                                                       q[j], j, type));
  const double diagonal = equation.diagonal();
  const bool inverse = equation.method == PoissonMethod::red_black;
  if (equation.method != PoissonMethod::cg && !(fits(diagonal) && (!inverse || fits(1 / diagonal))))
    return config.error("domain.length",
                        fmt::format("the sum of 2/h^2 over the dimensions, {:g}, is out of range of {}: "
                                    "use cells of another size",
                                    diagonal, type));
  const double sum = equation.lambda_high + equation.lambda_low;
  if (equation.method == PoissonMethod::chebyshev && !(std::isfinite(sum) && fits(2 / sum)))
    config.error("solver.lambda_high",
                 fmt::format("2 / (lambda_low + lambda_high) = {:g} is out of range of {}: use "
                             "other bounds, or cells of another size",
                             2 / sum, type));
}

PoissonMethod read_method(Config& config) {
  const std::string name = config.text(
      "solver.method", {"jacobi",
                        {"jacobi", "red_black", "chebyshev", "cg"},
                        "damped Jacobi steps, over-relaxation of red cells and then of black ones, Chebyshev's "
                        "semi-iteration, or conjugate gradients"});
  return name == "red_black"   ? PoissonMethod::red_black
         : name == "chebyshev" ? PoissonMethod::chebyshev
         : name == "cg"        ? PoissonMethod::cg
                               : PoissonMethod::jacobi;
}

/// A key of other methods: an error where it has a value. It may be removed, and is no other key.
void refuse_key(Config& config, const std::string& path, const std::string& methods) {
  if (config.has(path))
    config.error(path, path + " belongs to solver.method = " + methods + ": leave it out for another method");
  config.excuse(path);
}

template <int D>
void read_omega(Config& config, PoissonEquation<D>& equation) {
  if (equation.method != PoissonMethod::jacobi && equation.method != PoissonMethod::red_black)
    return refuse_key(config, "solver.omega", "\"jacobi\" and \"red_black\"");
  const bool jacobi = equation.method == PoissonMethod::jacobi;
  const double usual = jacobi ? 1 : best_over_relaxation(equation.grid);
  equation.omega =
      config.number("solver.omega", {usual, 0, 2, true, "",
                                     "damping factor of jacobi, or factor of over-relaxation of red_black, whose "
                                     "default is the best one for the grid"});
  if (!jacobi && equation.omega == 2)
    config.error("solver.omega", "solver.omega = 2 never brings red_black to a solution: use less than 2");
}

template <int D>
void read_bounds(Config& config, PoissonEquation<D>& equation) {
  const std::string low = "solver.lambda_low", high = "solver.lambda_high";
  const std::string low_help = "chebyshev: lower bound of the eigenvalues of -laplace that are not 0";
  const std::string high_help = "chebyshev: upper bound of the eigenvalues of -laplace";
  if (equation.method != PoissonMethod::chebyshev) {
    if (!config.has("solver.method")) {  // help lists all keys there are
      config.node(low, {low, "number", "0 .. 1e+300", "that of the grid", "1 / length^2", low_help});
      config.node(high, {high, "number", "above 0, up to 1e+300", "that of the grid", "1 / length^2", high_help});
    }
    refuse_key(config, low, "\"chebyshev\"");
    refuse_key(config, high, "\"chebyshev\"");
    return;
  }
  equation.lambda_low =
      config.number(low, {least_eigenvalue(equation.grid), 0, 1e300, false, "1 / length^2", low_help});
  equation.lambda_high = config.number(high, {2 * equation.diagonal(), 0, 1e300, true, "1 / length^2", high_help});
  if (!config.has_errors() && equation.lambda_low > equation.lambda_high)
    config.error(config.has(low) ? low : high,
                 fmt::format("solver.lambda_low = {:g} is above solver.lambda_high = {:g}: use a lower bound below "
                             "the upper one",
                             equation.lambda_low, equation.lambda_high));
}

template <int D>
std::unique_ptr<SolverModel<D>> make_poisson_model(Config& config, const GridSettings<D>& grid) {
  PoissonEquation<D> equation{grid};
  equation.method = read_method(config);
  read_omega(config, equation);
  read_bounds(config, equation);
  check_coefficients(config, equation);
  for (int j = 0; j < D; ++j)
    for (const auto& [side, rule] :
         {std::pair{"low", &grid.boundary.low[j]}, std::pair{"high", &grid.boundary.high[j]}})
      if (rule->own)
        config.error(fmt::format("domain.boundary.{}", side),
                     fmt::format("domain.boundary.{}: poisson has no rule \"{}\": it must know whether a rule is "
                                 "linear, so use one that is shipped",
                                 side, rule->own->name));
  return std::make_unique<PoissonModel<D>>(equation);
}

}  // namespace

void add_poisson(SolverKinds& kinds) {
  kinds.add("poisson",
            []<int D>(Config& config, const GridSettings<D>& grid) { return make_poisson_model(config, grid); });
}

}  // namespace isohalo
