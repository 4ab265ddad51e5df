/// kind = "poisson": -laplace(u) = f by Jacobi steps or conjugate gradients.

#include <fmt/format.h>

#include <cmath>

#include "stencils/conjugate_gradients.hpp"
#include "stencils/jacobi_solver.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {

namespace {

template <int D>
class PoissonModel : public SolverModel<D> {
 public:
  PoissonModel(const PoissonEquation<D>& equation, bool gradients) : equation_(equation), gradients_(gradients) {}

  std::vector<std::string> field_names() const override { return {"u"}; }
  bool has_source() const override { return true; }
  StencilShape<D> shape() const override { return StencilShape<D>::star(1); }
  double dt() const override { return 0; }
  int stored_fields() const override { return gradients_ ? 3 : 1; }
  int deepest() const override { return gradients_ ? 1 : SolverModel<D>::deepest(); }

  bool steps_in_tiles() const override { return !gradients_ && !equation_.singular(); }

  std::string advice_not_finite() const override {
    if (!gradients_ && equation_.omega > 1)
      return fmt::format("damped Jacobi steps may diverge with solver.omega = {:g}: use at most 1",
                         equation_.omega);
    return "use smaller values in [initial], [source] and domain.boundary";
  }

  /// u, its successor and f; or u, r, p, A p and f. One more while the first residual is formed.
  double memory(const Index<D>& extents, int depth) const override {
    const auto ghosts = shape().ghost_widths(
        depth, boundary_topology_of(equation_.grid.boundary, box_of_shape<D>(equation_.grid.shape)));
    return (gradients_ ? 6 : 4) * field_bytes<D>(equation_.grid.type, extents, ghosts[0], ghosts[1]);
  }

  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange) const override {
    if (equation_.grid.type == ElementType::float32) return create_as<float>(domain, depth, exchange);
    return create_as<double>(domain, depth, exchange);
  }

 private:
  template <class T>
  std::unique_ptr<Solver<D>> create_as(const CartesianDomain<D>& domain, int depth, Exchange exchange) const {
    if (gradients_) return std::make_unique<ConjugateGradients<T, D>>(domain, equation_, exchange);
    return std::make_unique<JacobiSolver<T, D>>(domain, equation_, depth, exchange);
  }

  PoissonEquation<D> equation_;
  bool gradients_;
};

/// 1/h^2 and, for jacobi, what is divided by must be numbers of the field's type.
template <int D>
void check_coefficients(Config& config, const PoissonEquation<D>& equation, bool gradients) {
  if (config.has_errors()) return;
  const auto stored = [&](double v) {
    return equation.grid.type == ElementType::float32 ? static_cast<double>(static_cast<float>(v)) : v;
  };
  const char* const type = type_name(equation.grid.type);
  const PerDim<double, D> q = equation.template q<double>();
  for (int j = 0; j < D; ++j)
    if (!std::isfinite(stored(q[j])))
      return config.error("domain.length", fmt::format("1/h^2 = {:g} of dimension {} is out of range of {}: use "
                                                       "larger cells",
                                                       q[j], j, type));
  const double diagonal = stored(equation.diagonal());
  if (!gradients && !(std::isfinite(diagonal) && diagonal > 0))
    config.error("domain.length", fmt::format("the sum of 2/h^2 over the dimensions, {:g}, is out of range of {}: "
                                              "use cells of another size",
                                              equation.diagonal(), type));
}

}  // namespace

template <int D>
std::unique_ptr<SolverModel<D>> make_poisson_model(Config& config, const GridSettings<D>& grid) {
  PoissonEquation<D> equation{grid, 1};
  const bool gradients =
      config.text("solver.method", {"jacobi", {"jacobi", "cg"}, "damped Jacobi steps or conjugate gradients"}) ==
      "cg";
  const std::string omega = "solver.omega";
  if (!gradients)
    equation.omega = config.number(omega, {1.0, 0, 2, true, "", "damping factor of jacobi; not for cg"});
  else if (config.has(omega))
    config.error(omega, omega + " belongs to solver.method = \"jacobi\": leave it out for \"cg\"");
  if (gradients) config.excuse(omega);  // it may be removed, and is no other key
  check_coefficients(config, equation, gradients);
  return std::make_unique<PoissonModel<D>>(equation, gradients);
}

#define ISOHALO_INSTANTIATE(D) \
  template std::unique_ptr<SolverModel<D>> make_poisson_model<D>(Config&, const GridSettings<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
