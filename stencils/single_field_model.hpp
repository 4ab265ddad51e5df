#pragma once
/// Models of solvers with one field `u` that a row kernel advances.

#include <memory>

#include "framework/run/solver.hpp"
#include "stencils/device/device_path.hpp"
#include "stencils/device/device_stepper.hpp"
#include "stencils/state_stepper.hpp"

namespace isohalo {

/// Bytes of one field of this type and of these extents and ghost layers.
template <int D>
double field_bytes(ElementType type, const Index<D>& extents, const Index<D>& ghost_low,
                   const Index<D>& ghost_high) {
  switch (type) {
    case ElementType::float32:
      return Field<float, D>::bytes_needed(extents, ghost_low, ghost_high);
    case ElementType::uint8:
      return Field<std::uint8_t, D>::bytes_needed(extents, ghost_low, ghost_high);
    default:
      return Field<double, D>::bytes_needed(extents, ghost_low, ghost_high);
  }
}

/// Bytes of the two fields such a solver holds, and of the cell sets that plan the halos of a list without a name.
template <int D>
double two_field_memory(const GridSettings<D>& grid, const StencilShape<D>& shape, const Index<D>& extents,
                        int depth) {
  const auto ghosts = shape.ghost_widths(depth, grid.topology());
  double sets = 0;
  if (shape.kind() == StencilShape<D>::Kind::custom) {
    sets = 2;
    for (int j = 0; j < D; ++j)
      sets *= static_cast<double>(std::min(extents[j], 2 * (ghosts[0][j] + ghosts[1][j]) + 1) + ghosts[0][j] +
                                  ghosts[1][j]);
  }
  return sets + 2 * field_bytes<D>(grid.type, extents, ghosts[0], ghosts[1]);
}

/// The solver that make(T()) makes, its fields being of floating-point type T.
template <int D, class Make>
std::unique_ptr<Solver<D>> with_type(ElementType type, const Make& make) {
  if (type == ElementType::float32) return make(float());
  return make(double());
}

/// The same for a solver on a device; nothing is made, or compiled, in a build without kernels for devices.
template <int D, class Make>
std::unique_ptr<Solver<D>> with_type_on_device(ElementType type, const Make& make) {
  if constexpr (kDevicePath)
    return with_type<D>(type, make);
  else
    return nullptr;
}

/// The model of a solver that is a StateStepper of one field: what is left to say is `create`, by `make`, and
/// `create_on_device`.
template <int D>
class SingleFieldModel : public SolverModel<D> {
 public:
  /// `shape` of one step of length `dt` (0: no time).
  SingleFieldModel(const GridSettings<D>& grid, const StencilShape<D>& shape, double dt)
      : grid_(grid), shape_(shape), dt_(dt) {}

  std::vector<std::string> field_names() const override { return {"u"}; }
  StencilShape<D> shape() const override { return shape_; }
  bool steps_in_tiles() const override { return true; }
  double dt() const override { return dt_; }
  double memory(const Index<D>& extents, int depth) const override {
    return two_field_memory(grid_, shape_, extents, depth);
  }
  std::string against_device() const override { return rules_against_device(grid_.boundary); }

 protected:
  const GridSettings<D>& grid() const { return grid_; }

  /// The solver on the device, whose kernel is with_point(T(), stride, make), make(point) of a point kernel
  /// (device_kernel.hpp). Collective in order.
  template <class WithPoint>
  std::unique_ptr<Solver<D>> make_on_device(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                            const WithPoint& with_point) const {
    return with_type_on_device<D>(grid_.type, [&]<class T>(T zero) {
      using Stepper = DeviceStepper<T, D, DeviceSpace>;
      const auto kernels = [&](const Index<D>& stride) {
        typename Stepper::Kernels all;
        all.push_back(with_point(zero, stride, [](const auto& point) { return Stepper::kernel_of(point); }));
        return all;
      };
      return std::make_unique<Stepper>(StateFields{{"u"}}, domain, shape_, std::vector{grid_.boundary}, depth,
                                       kernels, exchange);
    });
  }

  /// The solver in the grid's floating-point type T, whose row kernel is make_row(T(), stride). Collective in
  /// order.
  template <class MakeRow>
  std::unique_ptr<Solver<D>> make(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                  const MakeRow& make_row) const {
    return with_type<D>(grid_.type, [&]<class T>(T zero) {
      const auto row = [&](const Index<D>& stride) { return make_row(zero, stride); };
      return std::make_unique<StateStepper<T, D>>("u", domain, shape_, grid_.boundary, depth, row, exchange);
    });
  }

 private:
  GridSettings<D> grid_;
  StencilShape<D> shape_;
  double dt_;
};

}  // namespace isohalo
