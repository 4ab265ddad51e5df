#pragma once
/// The order of things in a step of a solver with fields on faces, whatever its fields lie in: hosts and devices
/// derive from it. Source of the staggered grid: Yee 1966, "Numerical solution of initial boundary value problems
/// involving Maxwell's equations in isotropic media".

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/halo/faces.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/solver.hpp"
#include "stencils/coefficient_in_time.hpp"
#include "stencils/side_faces.hpp"
#include "stencils/staggered_fields.hpp"
#include "stencils/state_fields.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

/// All fields are advanced in place. A step updates both faces of every cell that it updates, those that other
/// ranks own as well: then it reads no further than a star around each cell, and k steps may follow an exchange of
/// k layers.
template <int D>
class StaggeredSteps : public Solver<D> {
 public:
  std::vector<FieldHandle<D>> fields() override {
    std::vector<FieldHandle<D>> all;
    for (std::size_t f = 0; f < names_.state.size(); ++f)
      all.push_back({names_.state[f], "1", "state", host_array(f), names_.face_of(f)});
    return all;
  }
  std::vector<FieldHandle<D>> coefficients() override {
    std::vector<FieldHandle<D>> all;
    for (std::size_t k = 0; k < names_.coefficients.size(); ++k)
      all.push_back({names_.coefficients[k], "1", "auxiliary", host_array(names_.state.size() + k)});
    return all;
  }
  std::string residual_of() const override { return StateFields{names_.state}.change(); }
  ExchangeChoice exchange() const override { return plan_.choice(); }
  int depth() const override { return plan_.depth(); }
  Index<D> tile() const override { return sums_[0]->tile(); }
  void time_phases(PhaseClock* clock) override { phases_ = clock; }
  /// Sets up exchanges as well, since what that takes belongs to no step.
  void reduce_by(const ReductionOptions& options) override {
    for (const auto& sum : sums_) sum->reduce_by(options);
    for (const bool all : {true, false}) exchange_ghosts(all);
  }
  void set_time(std::int64_t step, double) override { step_ = step; }
  void fields_changed() override { steps_left_ = 0, upper_faces_known_ = false; }
  double advance(std::int64_t steps, bool change) override {
    for (std::int64_t left = steps - (change ? 1 : 0); left > 0;) {
      bring_ghosts();
      const int some = static_cast<int>(std::min<std::int64_t>(left, steps_left_));
      make(some, false);
      left -= some;
    }
    if (!change) return 0;
    bring_ghosts();
    make(1, true);
    return combine();
  }

 protected:
  /// `workers`, `runs_on`: of the exchanges (HaloOptions). Collective in order.
  StaggeredSteps(const CartesianDomain<D>& domain, StaggeredFields<D> names, int depth, Exchange exchange,
                 const Workers& workers, bool runs_on)
      : domain_(domain),
        names_(std::move(names)),
        around_(boundary_topology_of(names_.rules_of_cells(), domain.global())),
        plan_(domain, StencilShape<D>::star(1), depth,
              HaloOptions<D>{around_.mirror_low, around_.mirror_high, exchange, workers, runs_on}) {
    for (int j = -1; j < D; ++j) sums_.push_back(std::make_unique<CellSum<D>>(field_domain(domain, j)));
    for (int m = 0; m <= depth; ++m)
      bounds_.push_back(detail::reachable(domain.owned(), StencilShape<D>::star(1), m, around_));
  }

  /// Coefficient c, a source, depends on the time. Collective.
  void change_in_time(std::size_t c, const ValuesInTime<D>& values) {
    agreed(domain_.comm(), [&] { in_time_.emplace_back(c, values, bounds(plan_.depth())); });
  }

  /// Field f of the state, or a coefficient behind them, in the host's memory.
  virtual AnyArray<D> host_array(std::size_t f) const = 0;
  /// Field f of the state, erased.
  virtual ErasedArray<D> erased(std::size_t f) const = 0;
  /// `steps` that follow each other without an exchange, then so many further ones may: each updates all faces,
  /// then the fields in cells, of the cells that the steps after it read. With `change`, of a single one, the tile
  /// values of `sums_` as well.
  virtual void sweep(int steps, int further, bool change) = 0;

  /// Brings these values to the host, where they are elsewhere.
  virtual void take_tiles() {}

  /// Of the state that step q of a sweep reads, and of the sources in it: these are of the middle of the step, as
  /// its values on faces.
  double time(int q) const { return static_cast<double>(step_ + q) * names_.dt; }
  double time_of_sources(int q) const { return time(q) + 0.5 * names_.dt; }
  /// All cells inside the grid that so many steps can reach.
  const Box<D>& bounds(int further) const { return bounds_[static_cast<std::size_t>(further)]; }
  /// The cells that so many further steps need.
  std::vector<Box<D>> needed(int further) const {
    return StencilShape<D>::star(1).needed_boxes(domain_.owned(), further, around_);
  }

  CartesianDomain<D> domain_;
  StaggeredFields<D> names_;
  BoundaryTopology<D> around_;
  HaloPlan<D> plan_;
  std::vector<std::unique_ptr<CellSum<D>>> sums_;  ///< of the squared changes in cells, and on the faces of each
                                                   ///< dimension, each by its own tree
  std::vector<CoefficientInTime<D>> in_time_;
  PhaseClock* phases_ = nullptr;

 private:
  /// Brings ghosts: of all fields, or of those in cells alone. Collective.
  void exchange_ghosts(bool all) {
    exchanged_.clear();
    for (std::size_t f = 0; f < (all ? names_.state.size() : names_.cells()); ++f)
      exchanged_.push_back(on_faces(erased(f), names_.face_of(f)));
    plan_.exchange(exchanged_);
  }
  /// Where the next step needs them. Collective.
  void bring_ghosts() {
    if (steps_left_ > 0) return;
    const PhaseScope scope(phases_, Phase::exchange);
    // After single steps the only faces that are read and owned by others are those that were updated here, too.
    exchange_ghosts(plan_.depth() > 1 || !upper_faces_known_);
    upper_faces_known_ = true;
    steps_left_ = plan_.depth();
  }
  void make(int steps, bool change) {
    steps_left_ -= steps;
    sweep(steps, steps_left_, change);
    step_ += steps;
  }
  double combine() {
    const PhaseScope scope(phases_, Phase::reduction);
    take_tiles();
    for (const auto& sum : sums_) sum->start();
    double total = sums_[0]->wait();
    for (std::size_t f = 1; f < sums_.size(); ++f) total = total + sums_[f]->wait();
    return total;
  }

  std::vector<Box<D>> bounds_;
  std::vector<ErasedArray<D>> exchanged_;  ///< it keeps its memory
  int steps_left_ = 0;                     ///< until the next exchange
  bool upper_faces_known_ = false;         ///< the ghosts on faces that single steps read
  std::int64_t step_ = 0;                  ///< of the state
};

}  // namespace isohalo
