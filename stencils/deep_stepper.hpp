#pragma once
/// k steps per halo exchange: sweeps on regions that shrink by one stencil reach a step.

#include <Kokkos_Core.hpp>
#include <string>

#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"
#include "stencils/boundary.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

/// `boxes` without the cells of `hole`, as boxes.
template <int D>
std::vector<Box<D>> without(const std::vector<Box<D>>& boxes, const Box<D>& hole) {
  std::vector<Box<D>> rest;
  for (Box<D> b : boxes) {
    if (b.intersect(hole).empty()) {
      rest.push_back(b);
      continue;
    }
    for (int j = 0; j < D; ++j) {
      if (b.low[j] < hole.low[j]) {
        Box<D> below = b;
        below.high[j] = hole.low[j];
        rest.push_back(below);
        b.low[j] = hole.low[j];
      }
      if (b.high[j] > hole.high[j]) {
        Box<D> above = b;
        above.low[j] = hole.high[j];
        rest.push_back(above);
        b.high[j] = hole.high[j];
      }
    }
  }
  return rest;
}

/// Advances one field by a row kernel. Every owned cell after every step has the bits that single steps on one rank
/// give.
template <class T, int D, class Row>
class DeepStepper {
 public:
  /// `make_row(stride)` builds the kernel for the fields' strides. `depth` >= 1 steps per exchange. Collective in
  /// order.
  template <class MakeRow>
  DeepStepper(const std::string& name, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
              const BoundaryRules<D>& rules, int depth, MakeRow&& make_row, Exchange exchange = Exchange::automatic)
      : domain_(domain),
        rules_(rules),
        plan_(domain, shape, depth, HaloOptions<D>{rules.mirror_low(), rules.mirror_high(), exchange, {}}),
        reducer_(domain),
        now_(name, domain.owned(), plan_.ghost_low(), plan_.ghost_high()),
        next_(name + " (next)", domain.owned(), plan_.ghost_low(), plan_.ghost_high()),
        kernel_(make_row(now_.ref().stride)) {
    const Surroundings<D> around = surroundings_of(rules, domain.global());
    const auto layers = shape.ghost_widths(1, around);
    layers_low_ = layers[0];
    layers_high_ = layers[1];
    for (int m = 0; m <= depth; ++m) {
      const auto boxes = shape.needed_boxes(domain.owned(), m, around);
      Level level;
      // Not the bounding box of the needed cells: a stencil may read outside cells beside cells that it does not
      // read.
      const auto reach = shape.ghost_widths(m, around);
      level.bounds = domain.owned().grown(reach[0], reach[1]);
      for (int j = 0; j < D; ++j)
        if (!around.periodic[j]) {
          level.bounds.low[j] = std::max(level.bounds.low[j], around.global.low[j]);
          level.bounds.high[j] = std::min(level.bounds.high[j], around.global.high[j]);
        }
      level.all = SweepRegion<D>(boxes);
      level.shell = SweepRegion<D>(without(boxes, domain.owned()));
      levels_.push_back(std::move(level));
    }
  }

  const ArrayRef<T, D>& field() const { return now_.ref(); }
  const CartesianDomain<D>& domain() const { return domain_; }
  const HaloPlan<D>& plan() const { return plan_; }
  const Index<D>& tile() const { return reducer_.tile(); }

  /// To be called after the owned cells were written from outside: the ghosts are stale.
  void invalidate_ghosts() { steps_left_ = 0; }

  /// Advances by `steps`; with `change` returns the change sum of the last one, the same bits on all ranks, else 0.
  /// Collective. Fences.
  double advance(std::int64_t steps, bool change) {
    double sum = 0;
    for (std::int64_t s = 1; s <= steps; ++s) sum = step(change && s == steps);
    return sum;
  }

 private:
  /// What lies `m` steps around the block.
  struct Level {
    Box<D> bounds;  // all cells inside the grid that m steps can reach
    SweepRegion<D> all, shell;
  };

  double step(bool change) {
    if (steps_left_ == 0) {
      Kokkos::Profiling::pushRegion("isohalo::exchange");
      plan_.exchange(now_.ref());
      Kokkos::Profiling::popRegion();
      steps_left_ = plan_.depth();
    }
    fill_outside(now_.ref(), rules_, domain_.global(), levels_[static_cast<std::size_t>(steps_left_)].bounds,
                 layers_low_, layers_high_);
    --steps_left_;
    const Level& level = levels_[static_cast<std::size_t>(steps_left_)];
    double sum = 0;
    if (change) {
      sweep_with_change(reducer_, scratch_, now_.ref(), next_.ref(), kernel_);
      sweep(level.shell, now_.ref(), next_.ref(), kernel_);
      sum = reducer_.combine();
    } else {
      sweep(level.all, now_.ref(), next_.ref(), kernel_);
    }
    swap(now_, next_);
    return sum;
  }

  CartesianDomain<D> domain_;
  BoundaryRules<D> rules_;
  HaloPlan<D> plan_;
  ChangeReducer<D> reducer_;
  Field<T, D> now_, next_;
  Row kernel_;
  Index<D> layers_low_{}, layers_high_{};
  std::vector<Level> levels_;
  std::vector<double> scratch_;
  int steps_left_ = 0;
};

}  // namespace isohalo
