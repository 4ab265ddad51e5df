/// kind = "heat": explicit heat equation, second-order star.

#include <fmt/format.h>

#include <cmath>

#include "stencils/row_kernels.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/solvers.hpp"
#include "stencils/solvers/heat_in_field.hpp"
#include "stencils/time_step.hpp"

namespace isohalo {

namespace {

template <int D>
class HeatModel : public SingleFieldModel<D> {
 public:
  /// `c`: kappa dt / h^2 per dimension.
  HeatModel(const GridSettings<D>& grid, const PerDim<double, D>& c, double dt)
      : SingleFieldModel<D>(grid, StencilShape<D>::star(1), dt), c_(c) {}

  /// Below the limit of the time step no value grows beyond those given.
  std::string advice_not_finite() const override {
    return "differences of values as large as these overflow: use smaller values in [initial] and domain.boundary";
  }
  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                    bool on_device) const override {
    return this->make(
        domain, depth, exchange, on_device,
        [this]<class T>(T zero, const Index<D>& stride) {
          return PointRow<T, D, HeatPoint>(this->point(zero, stride));
        },
        [this](auto zero, const Index<D>& stride, const auto& make) { return make(this->point(zero, stride)); });
  }

 private:
  template <class T>
  HeatPoint<T, D> point(T, const Index<D>& stride) const {
    PerDim<T, D> c;
    for (int j = 0; j < D; ++j) c[j] = static_cast<T>(c_[j]);
    return {{c, stride}};
  }

  PerDim<double, D> c_;
};

template <int D>
std::unique_ptr<SolverModel<D>> make_heat_model(Config& config, const GridSettings<D>& grid) {
  const bool sourced = detail::has_sources(config, HeatInField::fields);
  if (detail::read_mask(config, false) != detail::Mask::none || sourced || config.has_table("solver.kappa"))
    return detail::make_cell_model<HeatInField, D>(config, grid, "heat");
  const double kappa = config.number("solver.kappa", {1.0, 0, 1e300, true, "length^2 / time",
                                                      "diffusivity kappa in u_t = kappa laplace(u); a number, or a "
                                                      "table [solver.kappa] with the keys of [initial]"});
  double sum = 0;
  for (int j = 0; j < D; ++j)
    sum = j == 0 ? 1 / (grid.spacing[j] * grid.spacing[j]) : sum + 1 / (grid.spacing[j] * grid.spacing[j]);
  const double limit = 1 / (2 * kappa * sum);
  const double dt =
      read_time_step(config, limit, "1 / (2 kappa (1/h_0^2 + 1/h_1^2 + ..))", "1/(2 kappa sum_j 1/h_j^2)");
  if (!(dt > 0) && !config.has_errors())
    config.error("solver.kappa",
                 "the stability limit of the time step is zero: use a smaller kappa or larger cells");
  PerDim<double, D> c;
  for (int j = 0; j < D; ++j) {
    c[j] = (kappa * dt) / (grid.spacing[j] * grid.spacing[j]);
    if (!std::isfinite(c[j]) && !config.has_errors())
      config.error(
          "solver.kappa",
          fmt::format("the coefficient kappa dt / h^2 is no number with kappa = {:g}, dt = {:g} and h = {:g} "
                      "in dimension {}: use another kappa, or cells of another size",
                      kappa, dt, grid.spacing[j], j));
  }
  return std::make_unique<HeatModel<D>>(grid, c, dt);
}

}  // namespace

void add_heat(SolverKinds& kinds) {
  kinds.add("heat",
            []<int D>(Config& config, const GridSettings<D>& grid) { return make_heat_model(config, grid); });
}

}  // namespace isohalo
