#pragma once
/// The model of a solver that is a function of a cell: cell_solver.hpp says what it has.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stencils/cell_settings.hpp"
#include "stencils/device/device_stepper.hpp"
#include "stencils/probe_cell.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/state_stepper.hpp"

namespace isohalo {

namespace detail {

/// The kernel of this function of the solver, made by make(point, amendments).
template <int Stage, class S, class T, int D, class Make>
auto cell_kernel(const CellSettings<S, D>& in, const Index<D>& stride, const Make& make) {
  CellGeometry<D> geometry;
  geometry.stride = stride;
  for (int j = 0; j < D; ++j) {
    geometry.inverse_square[j] = 1 / (in.grid.spacing[j] * in.grid.spacing[j]);
    geometry.inverse[j] = 1 / in.grid.spacing[j];
  }
  auto numbers = in.numbers;
  for (double& x : numbers) x = rounded<T>(x);
  const Amendments amendments = in.amendments(geometry);
  if constexpr (kCoefficients < S, D >> 0)
    if (in.fields_given)
      return make(CellPoint<S, T, D, Given::fields, Stage>(in.solver, geometry, in.dt), amendments);
  return make(CellPoint<S, T, D, Given::numbers, Stage>(in.solver, geometry, in.dt, numbers), amendments);
}

/// On the host's rows, or by whatever else Stepper makes of them (DeviceStepper).
template <class S, class T, int D, class Stepper = StateStepper<T, D>>
class CellSolver final : public Stepper {
 public:
  CellSolver(const CellSettings<S, D>& in, const CartesianDomain<D>& domain, int depth, Exchange exchange)
      : Stepper(
            in.fields(), domain, in.shapes(), in.rules(), depth,
            [&](const Index<D>& stride) {
              typename Stepper::Kernels kernels;
              [&]<int... K>(std::integer_sequence<int, K...>) {
                (kernels.push_back(cell_kernel<K, S, T, D>(in, stride, Make())), ...);
              }
              (std::make_integer_sequence<int, stages_of<S>()>());
              return kernels;
            },
            exchange) {
    if constexpr (kHasBefore<S>) begin_ = cell_kernel<kBegin, S, T, D>(in, this->field().stride, Make());
    in.for_each_source_in_time([this](std::size_t k, const auto& values) { this->change_in_time(k, values); });
  }

  void start() override {
    Stepper::start();
    if (begin_) this->sweep_before(*begin_);
  }

 private:
  using Kernel = typename Stepper::Kernels::value_type;
  struct Make {
    template <class Point>
    Kernel operator()(const Point& point, const Amendments& amendments) const {
      if constexpr (requires { Stepper::kernel_of(point, amendments); }) {
        return Stepper::kernel_of(point, amendments);
      } else {
        auto row = std::make_unique<CellRow<Point>>(point, reads_beside(point));
        if (!amendments.any()) return row;
        return std::make_unique<AmendedRow<T, D, Point::kWrites>>(std::move(row), amendments);
      }
    }
  };

  Kernel begin_;  ///< of the fields a step before, if there are such
};

template <class S, int D>
class CellModel : public SolverModel<D> {
 public:
  explicit CellModel(CellSettings<S, D> in) : in_(std::move(in)) {}

  std::vector<std::string> field_names() const override { return {S::fields.begin(), S::fields.end()}; }
  StencilShape<D> shape() const override { return in_.solver.template shape<D>(); }
  bool steps_in_tiles() const override { return stages_of<S>() == 1; }
  double dt() const override { return in_.dt; }
  std::string advice_not_finite() const override {
    return in_.advice_not_finite("use a smaller step (solver.dt or solver.cfl)");
  }
  std::vector<const InitialField<D>*> coefficients() const override { return in_.coefficients(); }
  void check_coefficients(const CartesianDomain<D>& domain) const override { check_given(in_, domain); }
  double memory(const Index<D>& extents, int depth) const override {
    const StateFields fields = in_.fields();
    const int reaches = fields.reaches(depth);
    const auto ghosts = shape().ghost_widths(reaches, in_.grid.topology());
    return 0.5 * static_cast<double>(fields.arrays()) * two_field_memory(in_.grid, shape(), extents, reaches) +
           static_cast<double>(fields.kept) * Field<double, D>::bytes_needed(extents, ghosts[0], ghosts[1]);
  }
  ExchangeLoad<D> exchange_load(int depth) const override {
    const StateFields fields = in_.fields();
    const StateShapes<D> shapes = in_.shapes();
    const int reaches = fields.reaches(depth);
    const std::size_t alike = fields.state.size() + (reaches > 1 ? fields.before.size() : 0);
    ExchangeLoad<D> load{{}, reaches < fields.stages ? fields.stages : 1};
    const int count = shapes.differ(reaches) ? 1 : static_cast<int>(alike);
    for (const HaloNeed<D>& need : shapes.needs(reaches)) {
      const auto same =
          std::find_if(load.arrays.begin(), load.arrays.end(), [&](const auto& a) { return a.need == need; });
      if (same == load.arrays.end())
        load.arrays.push_back({need, count});
      else
        ++same->count;
    }
    return load;
  }
  int stored_fields() const override {
    const StateFields fields = in_.fields();
    return static_cast<int>(fields.state.size() + fields.before.size());
  }
  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                    bool on_device) const override {
    return with_type<D>(in_.grid.type, on_device, [&]<class T, bool kDevice>(T, std::bool_constant<kDevice>) {
      using Stepper = std::conditional_t<kDevice, DeviceStepper<T, D, DeviceSpace>, StateStepper<T, D>>;
      return std::make_unique<CellSolver<S, T, D, Stepper>>(in_, domain, depth, exchange);
    });
  }
  std::string against_device() const override {
    std::string why;
    if (kStateFields < S >> kMostFields)
      why = fmt::format("a solver of more than {} fields has no device path", kMostFields);
    for (const BoundaryRules<D>& rules : in_.rules())
      if (why.empty()) why = rules_against_device(in_.grid.type, rules);
    return why;
  }

 private:
  CellSettings<S, D> in_;
};

template <class S, int D>
[[gnu::cold]] std::unique_ptr<SolverModel<D>> make_cell_model(Config& config, const GridSettings<D>& grid,
                                                              const std::string& kind) {
  CellSettings<S, D> in = read_parameters<S>(config, grid, kind);
  refuse_other_reads<S, D>(in.solver, kind);
  read_coefficients_and_dt(config, in);
  return std::make_unique<CellModel<S, D>>(std::move(in));
}

}  // namespace detail

}  // namespace isohalo
