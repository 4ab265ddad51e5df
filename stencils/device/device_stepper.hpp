#pragma once
/// A solver whose fields lie in the memory of a Kokkos execution space and are advanced there: what StateStepper
/// does on the host, with the same bits. Ghosts are packed by kernels; the host has copies of the fields for files,
/// pictures and digests, brought when they are asked for.

#include <string>
#include <vector>

#include "stencils/device/device_kernel.hpp"
#include "stencils/device/device_outside.hpp"
#include "stencils/device/device_path.hpp"
#include "stencils/device/device_sum.hpp"
#include "stencils/field_stepper.hpp"

namespace isohalo {

/// Why fields of this type with these rules cannot be on a device, as the end of a sentence; empty: they can.
template <int D>
std::string rules_against_device(ElementType type, const BoundaryRules<D>& rules) {
  for (const auto* side : {&rules.low, &rules.high})
    for (const BoundaryRule& rule : *side)
      if (rule.own) return "the boundary rule \"" + rule.own->name + "\" is a function of the host";
  return without_device_path<D>(type);
}

/// Of a FieldStepper of fields in the memory of Space.
template <class T, int D, class Space>
struct DeviceParts {
  using Field = DeviceField<T, D, Space>;
  using Outside = DeviceOutside<T, D, Space>;
  using Kernel = DeviceKernel<T, D, Space>;
  using Sum = CellSum<D>;
};

#define ISOHALO_DECLARE(T, D) extern template class FieldStepper<T, D, DeviceParts<T, D, DeviceSpace>>;
ISOHALO_FOR_EACH_FIELD(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

/// A FieldStepper by kernels of Space. Every owned cell after every step has the bits that StateStepper gives.
template <class T, int D, class Space>
class DeviceStepper : public FieldStepper<T, D, DeviceParts<T, D, Space>> {
  using Base = FieldStepper<T, D, DeviceParts<T, D, Space>>;

 public:
  using typename Base::Kernels;
  using typename Base::MakeKernels;
  using KernelPointer = DeviceKernelPointer<T, D, Space>;

  template <class Point>
  static KernelPointer kernel_of(const Point& point, const detail::Amendments& amendments = {}) {
    return device_kernel<T, D, Space>(point, amendments);
  }

  /// The rules are none of one's own; at most kMostFields fields. Collective in order.
  DeviceStepper(const StateFields& names, const CartesianDomain<D>& domain, const StateShapes<D>& shapes,
                const std::vector<BoundaryRules<D>>& rules, int depth, const MakeKernels& make_kernels,
                Exchange exchange = Exchange::automatic);
  ~DeviceStepper() override;

  /// Copies on the host, as the fields are now. What is changed there counts from `start` or `fields_changed` on.
  std::vector<FieldHandle<D>> fields() override;
  /// Copies on the host, as they were filled before `start`.
  std::vector<FieldHandle<D>> coefficients() override;
  /// Brings coefficients and fields to the device.
  void start() override;
  void fields_changed() override;
  double advance(std::int64_t steps, bool change) override;

 protected:
  /// One step; with `change` its change sum. Does not fence but for that.
  virtual double step(bool change);
  /// Instead of those that the constructor has made.
  void compute_by(Kernels kernels) { kernels_ = std::move(kernels); }
  const ArrayRef<T, D>& coefficient(std::size_t c) const { return coefficients_[c].ref(); }
  /// Of the values of the owned cells (DeviceSum::form). Collective. Fences.
  template <class Value>
  double sum_of(const Value& value) {
    const PhaseScope scope(phases_, Phase::reduction);
    sum_.form(value, this->field());
    return reducer_.combine();
  }
  /// The change sum of the last step, formed now. Collective. Fences.
  double change_of_step();
  /// f(k) for all cells of the first field, ghosts included, which must stay copies of each other. Does not fence.
  template <class F>
  void change_all(const char* label, const F& f) {
    const PhaseScope scope(phases_, Phase::sweep);
    for_each_cell_in<Space>(label, this->field().allocated(), this->field(), f);
  }

 private:
  using typename Base::Fields;
  using typename Base::Kernel;
  using Copies = std::vector<HostCopy<T, D>>;
  using Base::around_, Base::domain_, Base::in_time_, Base::kernels_, Base::names_, Base::overlap_, Base::phases_;
  using Base::before_, Base::writes_, Base::reducer_, Base::steps_left_, Base::step_, Base::ghosts_written_;
  using Base::deepest_, Base::layers_low_;
  using Base::now_, Base::next_, Base::third_, Base::coefficients_, Base::inner_, Base::layers_high_;

  /// The cells that so many further steps need.
  struct Level {
    std::vector<Box<D>> boxes;
    std::vector<Box<D>> beside_tiles;  // without those of whole tiles in the block
  };
  const Level& level(int further) const { return levels_[static_cast<std::size_t>(further)]; }

  detail::Images<D> images() const;
  static Copies copies_of(const Fields& fields, std::size_t n);
  void sweep_stage(const Kernel& kernel, const Fields& in, const Fields& out, int stage,
                   bool interior_done) override;
  double sweep_stage_with_change(const Kernel& kernel, const Fields& in, const Fields& out, int stage) override;
  void sweep_interior(const Fields& u) override;
  void bring_coefficients(int further, int stage) override;

  DeviceSum<D, Space> sum_;
  Copies host_, host_before_, host_coefficients_;
  bool host_is_behind_ = false;
  std::vector<Level> levels_;
  detail::Images<D> images_;  ///< of the fields, where sweeps write all ghosts that there are
  std::vector<Box<D>> rest_;  ///< of the first step after an exchange
};

}  // namespace isohalo
