#pragma once
/// A solver whose fields lie in the memory of a Kokkos execution space and are advanced there: what StateStepper
/// does on the host, with the same bits. Ghosts are packed by kernels; the host has copies of the fields for files,
/// pictures and digests, brought when they are asked for.

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "framework/halo/halo_plan.hpp"
#include "framework/run/solver.hpp"
#include "stencils/device/device_kernel.hpp"
#include "stencils/device/device_outside.hpp"
#include "stencils/device/device_path.hpp"
#include "stencils/device/device_sum.hpp"
#include "stencils/overlap_choice.hpp"
#include "stencils/state_fields.hpp"

namespace isohalo {

/// Why fields with these rules cannot be on a device, as the end of a sentence; empty: they can.
template <int D>
std::string rules_against_device(const BoundaryRules<D>& rules) {
  if (!kDevicePath) return kNoDevicePath;
  for (const auto* side : {&rules.low, &rules.high})
    for (const BoundaryRule& rule : *side)
      if (rule.own) return "the boundary rule \"" + rule.own->name + "\" is a function of the host";
  return {};
}

/// Advances fields by kernels, one for each stage. See StateStepper for what a kernel reads and writes. Every
/// owned cell after every step has the bits that StateStepper gives.
template <class T, int D, class Space>
class DeviceStepper : public Solver<D> {
 public:
  using KernelPointer = DeviceKernelPointer<T, D, Space>;
  using Kernels = std::vector<KernelPointer>;
  using MakeKernels = std::function<Kernels(const Index<D>& stride)>;

  template <class Point>
  static KernelPointer kernel_of(const Point& point, const detail::Amendments& amendments = {}) {
    return device_kernel<T, D, Space>(point, amendments);
  }

  /// The rules are none of one's own; at most kMostFields fields. Collective in order.
  DeviceStepper(const StateFields& names, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
                const std::vector<BoundaryRules<D>>& rules, int depth, const MakeKernels& make_kernels,
                Exchange exchange = Exchange::automatic);
  ~DeviceStepper() override;

  /// See StateStepper.
  void overlap_by(Overlap mode) {
    overlap_ = overlap_ways(names_.stages > 1 || previous_exchanged_ ? Overlap::never : mode, domain_.comm());
  }

  /// Its strides are those of all fields; its cells lie in the memory of Space.
  const ArrayRef<T, D>& field() const { return now_[0].ref(); }
  /// Copies on the host, as the fields are now. What is changed there counts from `start` or `fields_changed` on.
  std::vector<FieldHandle<D>> fields() override;
  /// Copies on the host, as they were filled before `start`.
  std::vector<FieldHandle<D>> coefficients() override;
  std::string residual_of() const override { return names_.change(); }
  ExchangeChoice exchange() const override { return plan_.choice(); }
  int depth() const override { return depth_; }
  Index<D> tile() const override { return reducer_.tile(); }
  void time_phases(PhaseClock* clock) override { phases_ = clock; }
  void reduce_by(const ReductionOptions& options) override;
  /// Brings coefficients and fields to the device. Outside the grid coefficients are mirrored.
  void start() override;
  void set_time(std::int64_t step, double dt) override { step_ = step, dt_ = dt; }
  void fields_changed() override;
  double advance(std::int64_t steps, bool change) override;

 protected:
  /// One step; with `change` its change sum. Does not fence but for that.
  virtual double step(bool change);
  /// Instead of those that the constructor has made.
  void compute_by(Kernels kernels) { kernels_ = std::move(kernels); }
  /// The first field, with ghosts and outside cells. Collective.
  const ArrayRef<T, D>& ready() {
    bring_ghosts(now_, 0, false);
    return field();
  }
  const ArrayRef<T, D>& coefficient(std::size_t c) const { return coefficients_[c].ref(); }
  /// Of the values of the owned cells (DeviceSum::form). Collective. Fences.
  template <class Value>
  double sum_of(const Value& value) {
    const PhaseScope scope(phases_, Phase::reduction);
    sum_.form(value, field());
    return reducer_.combine();
  }
  /// The change sum of the last step, formed now. Collective. Fences.
  double change_of_step();
  /// f(k) for all cells of the first field, ghosts included, which must stay copies of each other. Does not fence.
  template <class F>
  void change_all(const char* label, const F& f) {
    const PhaseScope scope(phases_, Phase::sweep);
    for_each_cell_in<Space>(label, field().allocated(), field(), f);
  }
  /// See StateStepper.
  void change_in_time(std::size_t c, const ValuesInTime<D>& values) { in_time_.emplace_back(c, values); }
  void sweep_before(const DeviceKernel<T, D, Space>& kernel);

 private:
  using Fields = std::vector<DeviceField<T, D, Space>>;
  using Copies = std::vector<HostCopy<T, D>>;
  using Refs = std::vector<ArrayRef<T, D>>;

  /// What lies `m` steps around the block.
  struct Level {
    Box<D> bounds;                     // all cells inside the grid that m steps can reach
    std::vector<Box<D>> boxes;         // that later steps need
    std::vector<Box<D>> beside_tiles;  // without those of whole tiles in the block
  };

  Fields make_fields(const std::vector<std::string>& names, const char* suffix) const;
  detail::Images<D> images() const;
  static Copies copies_of(const Fields& fields, std::size_t n);
  static const Refs& refs(const Fields& fields, Refs& list);
  const Refs& reads(const Fields& in, const Fields& before, int stage);
  double time_of(int stage) const {
    return static_cast<double>(step_) * dt_ + names_.stage_times[static_cast<std::size_t>(stage)] * dt_;
  }
  void sweep(const DeviceKernel<T, D, Space>& kernel, const std::vector<Box<D>>& boxes, const Refs& in,
             const Refs& out, const detail::Images<D>& images = {}) const;
  double sweep_with_change(const DeviceKernel<T, D, Space>& kernel, const Level& level, const Refs& in,
                           const Refs& out);
  /// The ghosts and outside cells that a sweep of this stage from `u` reads; returns true when the interior was
  /// swept meanwhile.
  bool bring_ghosts(const Fields& u, int stage, bool overlap);
  bool exchange_ghosts(const Fields& u, bool overlap);
  void fill_outside(const Fields& u, const Box<D>& valid, int stage);
  double step(bool change, bool overlap);
  /// The coefficients that depend on the time, where a sweep of this level reads them.
  void bring_coefficients(const Level& level, double time);

  StateFields names_;
  CartesianDomain<D> domain_;
  BoundaryTopology<D> around_;
  int depth_;
  HaloPlan<D> plan_;
  CellSum<D> reducer_;
  DeviceSum<D, Space> sum_;
  std::vector<DeviceOutside<T, D, Space>> outside_;  ///< of each field
  Fields now_, next_, third_, coefficients_;
  Copies host_, host_before_, host_coefficients_;
  bool host_is_behind_ = false;
  std::vector<std::pair<std::size_t, ValuesInTime<D>>> in_time_;
  Kernels kernels_;
  Index<D> layers_low_{}, layers_high_{};
  bool previous_exchanged_;
  std::vector<Level> levels_;
  FastestWay overlap_;                   ///< 1: overlap
  detail::Images<D> images_;             ///< of the fields, where sweeps write all ghosts that there are
  bool ghosts_written_ = false;          ///< of the state, by the last sweep
  std::vector<Box<D>> interior_, rest_;  ///< of the first step after an exchange
  std::vector<ErasedArray<D>> erased_;
  Refs reads_, writes_, before_;
  int steps_left_ = 0;     ///< sweeps until the next exchange
  std::int64_t step_ = 0;  ///< of the state
  double dt_ = 0;
  PhaseClock* phases_ = nullptr;
};

}  // namespace isohalo
