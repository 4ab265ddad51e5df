#pragma once
/// Models of solvers with one field `u` that a row kernel advances.

#include <memory>
#include <type_traits>

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

/// The solver that make(T(), device) makes, its fields being of floating-point type T; device() is true on devices,
/// for which nothing is compiled in a build without kernels for them.
template <int D, class Make>
std::unique_ptr<Solver<D>> with_type(ElementType type, [[maybe_unused]] bool on_device, const Make& make) {
  const auto made = [&](auto device) -> std::unique_ptr<Solver<D>> {
    if (type == ElementType::float32) {
      if constexpr (!device() || kOnDevice<float, D>) return make(float(), device);
    } else {
      if constexpr (!device() || kOnDevice<double, D>) return make(double(), device);
    }
    throw UsageError(without_device_path<D>(type));  // refused already
  };
  if constexpr (kDevicePath > 0)
    if (on_device) return made(std::true_type());
  return made(std::false_type());
}

/// The model of a solver that is a StateStepper of one field: what is left to say is `create`, by `make`.
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
  std::string against_device() const override { return rules_against_device(grid_.type, grid_.boundary); }

 protected:
  const GridSettings<D>& grid() const { return grid_; }

  /// The solver in the grid's floating-point type T, whose row kernel is make_row(T(), stride); on a device, whose
  /// kernel is with_point(T(), stride, make), make(point) of a point kernel (device_kernel.hpp). Collective in
  /// order.
  template <class MakeRow, class WithPoint>
  std::unique_ptr<Solver<D>> make(const CartesianDomain<D>& domain, int depth, Exchange exchange, bool on_device,
                                  const MakeRow& make_row, const WithPoint& with_point) const {
    return with_type<D>(grid_.type, on_device, [&](auto zero, auto device) -> std::unique_ptr<Solver<D>> {
      using T = decltype(zero);
      if constexpr (device()) {
        using Stepper = DeviceStepper<T, D, DeviceSpace>;
        const auto kernels = [&](const Index<D>& stride) {
          typename Stepper::Kernels all;
          all.push_back(with_point(zero, stride, [](const auto& point) { return Stepper::kernel_of(point); }));
          return all;
        };
        return std::make_unique<Stepper>(StateFields{{"u"}}, domain, shape_, std::vector{grid_.boundary}, depth,
                                         kernels, exchange);
      } else {
        const auto row = [&](const Index<D>& stride) { return make_row(zero, stride); };
        return std::make_unique<StateStepper<T, D>>("u", domain, shape_, grid_.boundary, depth, row, exchange);
      }
    });
  }

 private:
  GridSettings<D> grid_;
  StencilShape<D> shape_;
  double dt_;
};

}  // namespace isohalo
