#pragma once
/// A solver with fields that a row kernel advances together, k steps per halo exchange: sweeps on regions that
/// shrink by one stencil reach a step, in time tiles (time_tiles.hpp).

#include <Kokkos_Core.hpp>
#include <array>
#include <chrono>
#include <string>
#include <type_traits>
#include <utility>

#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/halo_regions.hpp"
#include "framework/run/solver.hpp"
#include "stencils/boundary.hpp"
#include "stencils/overlap_choice.hpp"
#include "stencils/sweep.hpp"
#include "stencils/time_tiles.hpp"

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

/// The names of N fields; of one, just its name.
template <std::size_t N>
struct FieldNames {
  template <class Name>
  FieldNames(const Name& name) requires(N == 1 && std::is_convertible_v<Name, std::string>) : of{name} {}
  FieldNames(const std::array<std::string, N>& names) : of(names) {}
  std::array<std::string, N> of;
};

/// Advances N fields by a row kernel. Every owned cell after every step has the bits that single steps on one rank
/// give. The kernel of one field is as in row_kernels.hpp, that of several takes an array of the rows of each.
template <class T, int D, class Row, std::size_t N = 1>
class DeepStepper : public Solver<D> {
 public:
  /// `make_row(stride)` builds the kernel for the fields' strides. `depth` >= 1 steps per exchange. `overlap`:
  /// whether a step without change sum that needs an exchange sweeps, while the messages travel, what reads no
  /// ghosts of other ranks. Collective in order.
  template <class MakeRow>
  DeepStepper(const FieldNames<N>& names, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
              const BoundaryRules<D>& rules, int depth, MakeRow&& make_row, Exchange exchange = Exchange::automatic,
              Overlap overlap = Overlap::automatic)
      : names_(names.of),
        domain_(domain),
        rules_(rules),
        plan_(domain, shape, depth, HaloOptions<D>{rules.mirror_low(), rules.mirror_high(), exchange, {}}),
        reducer_(domain),
        now_(make_fields("", exchange, depth)),
        next_(make_fields(" (next)", exchange, depth)),
        kernel_(make_row(now_[0].ref().stride)),
        // Steps in tiles gain more than an exchange costs that comes once in several steps.
        overlap_(depth > 1 && overlap == Overlap::automatic ? Overlap::never : overlap, domain.comm()) {
    const BoundaryTopology<D> around = boundary_topology_of(rules, domain.global());
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
      level.boxes = boxes;
      std::stable_sort(level.boxes.begin(), level.boxes.end(),
                       [](const Box<D>& a, const Box<D>& b) { return a.cells() > b.cells(); });
      levels_.push_back(std::move(level));
    }
    Index<D> reach;
    for (int j = 0; j < D; ++j) reach[j] = std::max(layers_low_[j], layers_high_[j]);
    constexpr auto cell_bytes = static_cast<std::int64_t>(2 * N * sizeof(T));
    tiles_ = TimeTiles<D>::chosen(domain.owned().extents(), reach, cell_bytes, 64 / sizeof(T), depth,
                                  second_level_cache() * std::max(1, SweepSpace().concurrency()));
    // Where ghosts repeat the grid they are copied when the exchange ends.
    const bool repeats = HaloGeometry<D>{domain.decomposition(), shape, depth, around}.repeats_grid();
    if (overlap != Overlap::never && depth > 0 && !repeats) {
      Box<D> inner = domain.owned();
      for (int j = 0; j < D; ++j)
        if (domain.decomposition().blocks(j) > 1) inner.low[j] += layers_low_[j], inner.high[j] -= layers_high_[j];
      interior_ = SweepRegion<D>({inner});
      rest_ = SweepRegion<D>(without(shape.needed_boxes(domain.owned(), depth - 1, around), inner));
    }
  }

  const ArrayRef<T, D>& field() const { return now_[0].ref(); }
  std::vector<FieldHandle<D>> fields() override {
    std::vector<FieldHandle<D>> all;
    for (std::size_t f = 0; f < N; ++f) all.push_back({names_[f], "1", "state", now_[f].ref()});
    return all;
  }
  std::string residual_of() const override {
    std::string text = "the change of " + names_[0];
    for (std::size_t f = 1; f < N; ++f) text += (f + 1 < N ? ", " : " and ") + names_[f];
    return text;
  }
  ExchangeChoice exchange() const override { return plan_.choice(); }
  Index<D> tile() const override { return reducer_.tile(); }
  void time_phases(PhaseClock* clock) override { phases_ = clock; }
  /// Sets up exchanges as well, since what that takes belongs to no step.
  void reduce_by(const ReductionOptions& options) override {
    reducer_.reduce_by(options);
    plan_.exchange(std::span<const ErasedArray<D>>(erased(now_)));
  }
  /// The ghosts are stale.
  void fields_changed() override { steps_left_ = 0; }

  /// Whether steps overlap exchange and sweep, or that it is not known yet.
  const OverlapChoice& overlap() const { return overlap_; }

  /// The field before the last step; its ghosts are of no use.
  const ArrayRef<T, D>& previous() const { return next_[0].ref(); }

  /// The field with everything in place that the next step reads: ghosts and cells outside the grid. Collective.
  const ArrayRef<T, D>& ready() {
    bring_ghosts(false);
    return now_[0].ref();
  }

  /// v = f(v) in every cell that holds a value, ghosts included, so that they stay copies of each other. Local.
  template <class F>
  void change_all(const F& f) requires(N == 1) {
    const ArrayRef<T, D> u = now_[0].ref();
    const PhaseScope scope(phases_, Phase::sweep);
    for_each_row_of("isohalo::change_all", levels_[static_cast<std::size_t>(steps_left_)].all,
                    [&](const Index<D>& i, std::int64_t n) {
                      T* const row = &u.at(i);
                      for (std::int64_t x = 0; x < n; ++x) row[x] = f(row[x]);
                    });
  }

  double advance(std::int64_t steps, bool change) override {
    for (std::int64_t left = steps - (change ? 1 : 0); left > 0;) left -= advance_without_change(left);
    return change && steps > 0 ? step(true) : 0;
  }

  /// Cuts the block for several steps into tiles of these extents; by default by the size of the cache. Local.
  void cut_tiles(const Index<D>& extents) { tiles_.extents = extents; }
  const TimeTiles<D>& tiles() const { return tiles_; }

 private:
  using Fields = std::array<Field<T, D>, N>;

  Fields make_fields(const char* suffix, Exchange exchange, int depth) const {
    const FieldRows rows = depth > 1 ? FieldRows::in_lines : FieldRows::back_to_back;
    return [&]<std::size_t... F>(std::index_sequence<F...>)->Fields {
      return {Field<T, D>(names_[F] + suffix, domain_.owned(), plan_.ghost_low(), plan_.ghost_high(),
                          field_memory(exchange, domain_.comm()), rows)...};
    }
    (std::make_index_sequence<N>());
  }
  /// What a kernel of one field or of several takes.
  static auto arrays(const Fields& fields) {
    if constexpr (N == 1) {
      return fields[0].ref();
    } else {
      std::array<ArrayRef<T, D>, N> all;
      for (std::size_t f = 0; f < N; ++f) all[f] = fields[f].ref();
      return all;
    }
  }
  static std::array<ErasedArray<D>, N> erased(const Fields& fields) {
    return [&]<std::size_t... F>(std::index_sequence<F...>)->std::array<ErasedArray<D>, N> {
      return {erase(fields[F].ref())...};
    }
    (std::make_index_sequence<N>());
  }

  /// Between the parts of an interior, messages that MPI moves only when it is called get on.
  static constexpr std::int64_t kParts = 16;

  /// What lies `m` steps around the block.
  struct Level {
    Box<D> bounds;  // all cells inside the grid that m steps can reach
    SweepRegion<D> all, shell;
    std::vector<Box<D>> boxes;  // of `all`, the largest first
  };

  /// At least one step and at most so many; returns how many.
  std::int64_t advance_without_change(std::int64_t most) {
    const int left = steps_left_ == 0 ? plan_.depth() : steps_left_;
    const int steps = static_cast<int>(std::min<std::int64_t>(most, left));
    const bool overlapped = steps_left_ == 0 && overlap_.overlap();
    if (steps < 2 || overlapped) {
      step(false);
      return 1;
    }
    bring_ghosts(false);
    const PhaseScope scope(phases_, Phase::sweep);
    const auto level = [&](int q) -> const Level& {
      return levels_[static_cast<std::size_t>(steps_left_ - 1 - q)];
    };
    tiles_.for_each_part(
        steps, [&](int q) -> const Box<D>& { return level(q).bounds; },
        [&](int q, const Box<D>& part) { sweep_part(level(q), part, q, q + 1 < steps); });
    if (steps % 2) std::swap(now_, next_);
    steps_left_ -= steps;
    return steps;
  }

  /// One part of a tile: step q of several, and the outside cells that the next one reads.
  void sweep_part(const Level& level, const Box<D>& part, int q, bool outside) {
    const Fields &from = q % 2 ? next_ : now_, &to = q % 2 ? now_ : next_;
    std::int64_t left = part.cells();
    for (const Box<D>& b : level.boxes) {
      const Box<D> common = b.intersect(part);
      if (common.empty()) continue;
      sweep_box(common, arrays(from), arrays(to), kernel_);
      if ((left -= common.cells()) == 0) break;
    }
    if (!outside) return;
    const Box<D> mirrored = with_mirrored(part, level.bounds);
    for (const Field<T, D>& u : to)
      fill_outside(u.ref(), rules_, domain_.global(), mirrored, layers_low_, layers_high_);
  }

  /// `part` and beside a side of the grid the cells that outside ones mirror. They have their values of the same
  /// step: those that lie lower are of earlier tiles, and less than a skew away, so that the step after the next
  /// has not come to them.
  Box<D> with_mirrored(Box<D> part, const Box<D>& bounds) const {
    for (int j = 0; j < D; ++j) {
      if (rules_.low[j].kind == Boundary::periodic) continue;
      const Box<D>& global = domain_.global();
      if (part.low[j] < global.low[j] + layers_low_[j]) part.low[j] = global.low[j];
      if (part.high[j] == global.high[j]) part.low[j] = std::min(part.low[j], global.high[j] - layers_high_[j]);
      part.low[j] = std::max(part.low[j], bounds.low[j]);
    }
    return part;
  }

  double step(bool change) {
    // Not by what this rank has: its neighbors may have an interior where it has none.
    const bool either_way = !change && steps_left_ == 0 && !overlap_.decided();
    const auto start = std::chrono::steady_clock::now();
    const double sum = step(change, !change && overlap_.overlap());
    if (either_way) {
      const PhaseScope scope(phases_, Phase::exchange);  // in the last step of the trial ranks wait for each other
      overlap_.took(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return sum;
  }

  double step(bool change, bool overlap) {
    const bool interior_done = bring_ghosts(overlap && interior_.size() > 0);
    --steps_left_;
    const Level& level = levels_[static_cast<std::size_t>(steps_left_)];
    double sum = 0;
    const PhaseScope scope(phases_, Phase::sweep);
    if (change) {
      sweep_with_change(reducer_, scratch_, arrays(now_), arrays(next_), kernel_);
      sweep(level.shell, arrays(now_), arrays(next_), kernel_);
      const PhaseScope reduction(phases_, Phase::reduction);
      sum = reducer_.combine();
    } else {
      sweep(interior_done ? rest_ : level.all, arrays(now_), arrays(next_), kernel_);
    }
    std::swap(now_, next_);
    return sum;
  }

  /// Everything that the next step reads; returns true when the interior was swept meanwhile.
  bool bring_ghosts(bool overlap) {
    bool interior_done = false;
    if (steps_left_ == 0) {
      const PhaseScope scope(phases_, Phase::exchange);
      interior_done = exchange_ghosts(overlap);
      steps_left_ = plan_.depth();
    }
    const PhaseScope scope(phases_, Phase::boundary);
    for (const Field<T, D>& u : now_)
      fill_outside(u.ref(), rules_, domain_.global(), levels_[static_cast<std::size_t>(steps_left_)].bounds,
                   layers_low_, layers_high_);
    return interior_done;
  }

  /// Brings the ghosts; returns true when it has swept the interior meanwhile.
  bool exchange_ghosts(bool overlap) {
    if (!overlap) {
      plan_.exchange(std::span<const ErasedArray<D>>(erased(now_)));
      return false;
    }
    plan_.start(std::span<const ErasedArray<D>>(erased(now_)));
    // After `start` the ghosts copied within this rank are in place, unless they wait for an earlier stage.
    overlap = plan_.choice().used.pattern != HaloPattern::slabs;
    if (overlap) {
      Box<D> in_place = levels_.back().bounds;
      for (int j = 0; j < D; ++j)
        if (domain_.decomposition().blocks(j) > 1)
          in_place.low[j] = domain_.owned().low[j], in_place.high[j] = domain_.owned().high[j];
      {
        const PhaseScope scope(phases_, Phase::boundary);
        for (const Field<T, D>& u : now_)
          fill_outside(u.ref(), rules_, domain_.global(), in_place, layers_low_, layers_high_);
      }
      const std::int64_t parts = std::min(kParts, interior_.size());
      for (std::int64_t part = 0; part < parts; ++part) {
        {
          const PhaseScope scope(phases_, Phase::sweep);
          sweep(interior_, arrays(now_), arrays(next_), kernel_, part, parts);
        }
        plan_.progress();
      }
    }
    plan_.finish();
    return overlap;
  }

  std::array<std::string, N> names_;
  CartesianDomain<D> domain_;
  BoundaryRules<D> rules_;
  HaloPlan<D> plan_;
  CellSum<D> reducer_;
  Fields now_, next_;
  Row kernel_;
  Index<D> layers_low_{}, layers_high_{};
  OverlapChoice overlap_;
  SweepRegion<D> interior_, rest_;  ///< of the first step after an exchange
  std::vector<Level> levels_;
  TimeTiles<D> tiles_;
  std::vector<double> scratch_;
  int steps_left_ = 0;
  PhaseClock* phases_ = nullptr;
};

}  // namespace isohalo
