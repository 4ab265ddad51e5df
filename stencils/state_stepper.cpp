#include "stencils/state_stepper.hpp"

#include <algorithm>

#include "datatypes/box.hpp"
#include "datatypes/cache_size.hpp"
#include "framework/schedule/stopwatch.hpp"
#include "stencils/boundary.hpp"
#include "stencils/boxes.hpp"

namespace isohalo {

template <class T, int D>
StateStepper<T, D>::StateStepper(const StateFields& names, const CartesianDomain<D>& domain,
                                 const StateShapes<D>& shapes, const std::vector<BoundaryRules<D>>& rules,
                                 int depth, const MakeKernels& make_kernels, Exchange exchange)
    : Base(names, domain, shapes, rules, depth, make_kernels, exchange, host_workers(), false,
           field_memory(exchange, domain.comm())) {
  for (int m = 0; m <= deepest_; ++m) {
    const auto boxes = shapes.all.needed_boxes(domain.owned(), m, around_);
    Level level;
    level.all = in_orders(boxes);
    level.shell = SweepRegion<D>(detail::without(boxes, domain.owned()));
    level.boxes = boxes;
    std::stable_sort(level.boxes.begin(), level.boxes.end(),
                     [](const Box<D>& a, const Box<D>& b) { return a.cells() > b.cells(); });
    levels_.push_back(std::move(level));
  }
  for (const Fields* list : {&now_, &next_, &third_})
    for (std::size_t f = 0; f < list->size(); ++f)
      outside_[f].fill_for_good((*list)[f].ref(), this->bounds(deepest_));
  // By planes for a gain of a tenth: where they write past the caches they were seen to take a third longer or not,
  // by where in memory the stack lies (docs/performance.md).
  if (D > 2) orders_ = FastestWay::of(2, kernels_[0]->reads_what_it_writes() ? 0.98 : 0.9);
  if (D > 1) lead_ = layers_high_[0] * now_[0].ref().stride[0];
  const auto cell_bytes = names_.template cell_bytes<T>();
  // Of the last level a core has some such share, where all are at work.
  in_cache_ = domain_.owned().cells() * cell_bytes <= 4 * host_threads() * second_level_cache();
  go_deep(depth);
}

template <class T, int D>
StateStepper<T, D>::~StateStepper() = default;

template <class T, int D>
typename StateStepper<T, D>::Region StateStepper<T, D>::in_orders(const std::vector<Box<D>>& boxes) const {
  const auto cell_bytes = static_cast<std::int64_t>(names_.state.size() * sizeof(T));
  return {SweepRegion<D>(boxes, 1 + layers_low_[0] + layers_high_[0], cell_bytes),
          D < 3 ? SweepRegion<D>() : SweepRegion<D>(boxes, 0, 0)};
}

template <class T, int D>
void StateStepper<T, D>::go_deep(int depth) {
  depth_ = depth;
  sweeps_ = names_.reaches(depth);
  for (TimeTiles<D>& t : tiles_taken_) t = {};
  this->plan();
  Index<D> reach;
  for (int j = 0; j < D; ++j) reach[j] = std::max(layers_low_[j], layers_high_[j]);
  const auto cell_bytes = names_.template cell_bytes<T>();
  tilings_.try_emplace(sweeps_,
                       TileSizes<D>::of(domain_.owned().extents(), reach, cell_bytes, 64 / sizeof(T), sweeps_,
                                        host_threads(), kernels_[0]->rows_together(), forced_tile_));
  if (names_.stages > 1 || sweeps_ > 1) return;
  interior_ = in_orders({inner_});
  rest_ = SweepRegion<D>(detail::without(shapes_.all.needed_boxes(domain_.owned(), 0, around_), inner_));
}

template <class T, int D>
void StateStepper<T, D>::try_depths(const std::vector<int>& depths) {
  std::int64_t cells = 1;
  for (int j = 0; j < D; ++j) cells *= domain_.decomposition().largest_extent(j);
  depth_choice_ = DepthChoice(depths, cells);
  plans_.clear();  // the first one decides how all exchange
  go_deep(depths.front());
}

template <class T, int D>
void StateStepper<T, D>::sweep_by(const SweepSettings<D>& settings) {
  forced_tile_ = settings.tile;
  if (forced_tile_) tilings_.clear(), go_deep(depth_);
  if (settings.way) fetches_ = fetches_with_change_ = FastestWay::decided_for(*settings.way);
}

template <class T, int D>
std::string StateStepper<T, D>::sweeps() const {
  if (sweeps_ > 1 && tiles_taken().extents[0] > 0) return tiles_taken().text(domain_.owned().extents());
  std::string text = Fetch::text(fetches_, fetches_with_change_);
  if (D > 2 && orders_.decided()) text += orders_.way() == 0 ? ", rows in blocks" : ", plane by plane";
  if (fetches_.decided() && overlap_.decided() && overlap_.way() == 1) text += ", while ghosts travel";
  return text;
}

template <class T, int D>
double StateStepper<T, D>::advance(std::int64_t steps, bool change) {
  double sum = 0;
  // A few steps that the ghosts still suffice for are not worth a pass of their own, nor to begin each call's steps
  // in the middle of a tile for ever: where fresh ghosts save a pass, they come now.
  const auto passes = [&](std::int64_t n) { return n > 0 ? (n - 1) / sweeps_ + 1 : 0; };
  if (sweeps_ > 1 && names_.stages == 1 && steps_left_ > 0 && passes(steps) <= passes(steps - steps_left_))
    steps_left_ = 0;
  for (std::int64_t left = steps; left > 0;) {
    const bool trial = tries_depths();
    if (trial && (steps_left_ == 0 || steps_left_ == sweeps_)) {  // sweeps_: fresh ghosts, of which none was used
      depth_choice_.end_block(domain_.comm());
      if (depth_choice_.depth() != depth_) go_deep(depth_choice_.depth()), steps_left_ = 0;
    }
    const detail::Stopwatch watch(trial);
    const std::int64_t done = advance_some(left, change, sum);
    if (trial && !tiles_tried_) depth_choice_.took(watch.seconds(), done);
    left -= done;
  }
  return sum;
}

template <class T, int D>
std::int64_t StateStepper<T, D>::advance_some(std::int64_t most, bool change, double& sum) {
  const int left = steps_left_ == 0 ? sweeps_ : steps_left_;
  const int steps = static_cast<int>(std::min<std::int64_t>(most, left));
  tiles_tried_ = false;
  if (steps < 2 || names_.stages > 1) {
    sum = step(change && most == 1);
    return 1;
  }
  change = change && steps == most;
  this->bring_ghosts(now_, 0, false);
  {
    const PhaseScope scope(phases_, Phase::sweep);
    const auto further = [&](int q) { return steps_left_ - 1 - q; };
    TileSizes<D>& tiling = tilings_.at(sweeps_);
    tiles_taken_[change] = tiling.now(change);
    const TimeTiles<D> tiles = change ? tiles_taken_[1].in_units(reducer_.tile()) : tiles_taken_[0];
    const bool whole = steps == sweeps_;  // others take other times
    tiles_tried_ = whole && !tiling.ways[change].decided();
    const detail::Stopwatch watch(tiles_tried_);
    tiles.for_each_part(
        steps, [&](int q) { return in_whole_lines(this->bounds(further(q))); },
        [&](int q, const Box<D>& part) { sweep_part(further(q), part, q, steps, change, tiles); });
    if (tiles_tried_) tiling.ways[change].took(watch.seconds());
  }
  if (steps % 2 && !in_place_) std::swap(now_, next_);
  steps_left_ -= steps;
  step_ += steps;
  if (change) {
    const PhaseScope scope(phases_, Phase::reduction);
    sum = reducer_.combine();
  }
  return steps;
}

template <class T, int D>
void StateStepper<T, D>::sweep_part(int further, const Box<D>& lines, int q, int steps, bool change,
                                    const TimeTiles<D>& tiles) {
  const Box<D> part = lines.intersect(this->bounds(further));
  if (part.empty()) return;
  const bool last = q + 1 == steps;
  const bool turned = q % 2 && !in_place_;
  const Fields &from = turned ? next_ : now_, &to = turned || in_place_ ? now_ : next_;
  const RowUpdate<T, D> update = this->update(this->kernel(0, q), from, to, 0);
  const Box<D> owned = part.intersect(domain_.owned());  // its change, where it is wanted
  T* const kept = in_place_ && change && q + 2 == steps && !owned.empty()
                      ? replaced_.keep(next_[0].ref(), part, tiles.skew)
                      : nullptr;
  const bool summed = last && change && !owned.empty();
  T* const replaced =
      summed && change_over_two_ ? replaced_.values((in_place_ ? next_ : to)[0].ref(), owned) : nullptr;
  const std::int64_t next = tiles.next(q, steps, this->bounds(further + q), update.like.stride);
  const bool longer = !in_place_ && update.kernel.takes_any_value();
  std::int64_t left = part.cells();
  for (const Box<D>& b : level(further).boxes) {
    if (left == 0) break;
    const Box<D> common = b.intersect(part);
    if (common.empty()) continue;
    give_coefficients(common, step_ + q, 0);
    sweep_box(longer ? in_whole_lines(common).intersect(lines) : common, update, next, kept);
    left -= common.cells();
  }
  if (!last) return this->fill_outside_of(to, with_mirrored(part, this->bounds(further)), step_ + q + 1, 0);
  if (summed)
    change_in_box(reducer_, scratch_, owned, update.like, update.out,
                  replaced ? std::span<T* const>(&replaced, 1) : this->addresses(from, before_));
}

template <class T, int D>
Box<D> StateStepper<T, D>::in_whole_lines(Box<D> box) const {
  constexpr int j = D - 1;
  const Box<D>&owned = domain_.owned(), &grid = domain_.global();
  const auto in_lines = [](std::int64_t cells) { return detail::RowLayout::in_lines<T>(cells); };
  const std::int64_t low = owned.low[j] - in_lines(owned.low[j] - box.low[j]),
                     high = owned.low[j] + in_lines(box.high[j] - owned.low[j]);
  if (box.low[j] < owned.low[j] && (around_.periodic[j] || low >= grid.low[j])) box.low[j] = low;
  if (box.high[j] > owned.high[j] && (around_.periodic[j] || high <= grid.high[j])) box.high[j] = high;
  return box;
}

template <class T, int D>
Box<D> StateStepper<T, D>::with_mirrored(Box<D> part, const Box<D>& bounds) const {
  for (int j = 0; j < D; ++j) {
    if (around_.periodic[j]) continue;
    const Box<D>& global = domain_.global();
    if (part.low[j] < global.low[j] + layers_low_[j]) part.low[j] = global.low[j];
    if (part.high[j] == global.high[j]) part.low[j] = std::min(part.low[j], global.high[j] - layers_high_[j]);
    part.low[j] = std::max(part.low[j], bounds.low[j]);
  }
  return part;
}

template <class T, int D>
double StateStepper<T, D>::step(bool change) {
  // Not by what this rank has: its neighbors may have an interior where it has none.
  const bool either_way = !change && steps_left_ == 0 && sweeps_ == 1 && sweeps_decided() && !overlap_.decided();
  FastestWay& swept_by = change ? fetches_with_change_ : fetches_.decided() ? orders_ : fetches_;
  const bool tried = either_way || !swept_by.decided();
  const detail::Stopwatch watch(tried);
  const double sum = Base::step(change, !change && overlaps());
  if (!tried) return sum;
  const double seconds = watch.seconds();
  const PhaseScope scope(phases_, Phase::exchange);  // in the last step of a trial ranks wait for each other
  if (either_way) overlap_.took(seconds, &domain_.comm());
  if (steps_left_ == 0) swept_by.took(seconds, &domain_.comm());
  return sum;
}

template <class T, int D>
void StateStepper<T, D>::sweep_stage(const Kernel& kernel, const Fields& in, const Fields& out, int stage,
                                     bool interior_done) {
  const PhaseScope scope(phases_, Phase::sweep);
  sweep(interior_done ? rest_ : ordered(level(steps_left_).all), update(kernel, in, out, stage), fetch(fetches_));
}

template <class T, int D>
double StateStepper<T, D>::sweep_stage_with_change(const Kernel& kernel, const Fields& in, const Fields& out,
                                                   int stage) {
  const RowUpdate<T, D> update = this->update(kernel, in, out, stage);
  const PhaseScope scope(phases_, Phase::sweep);
  sweep_with_change<T, D>(reducer_, scratch_, update, this->addresses(now_, before_), fetch(fetches_with_change_));
  sweep(level(steps_left_).shell, update, {.in_cache = in_cache_});
  const PhaseScope reduction(phases_, Phase::reduction);
  return reducer_.combine();
}

template <class T, int D>
void StateStepper<T, D>::sweep_interior(const Fields& u) {
  const SweepRegion<D>& interior = ordered(interior_);
  const std::int64_t parts = std::min(kParts, interior.size());
  for (std::int64_t part = 0; part < parts; ++part) {
    {
      const PhaseScope scope(phases_, Phase::sweep);
      sweep(interior, update(this->kernel(0, 0), u, next_, 0), fetch(fetches_), part, parts);
    }
    this->plan().progress();
  }
}

template <class T, int D>
template <class Cells>
void StateStepper<T, D>::give_coefficients(const Cells& cells, std::int64_t step, double after) {
  if (in_time_.empty()) return;
  const PhaseScope scope(phases_, Phase::sweep);
  const double time = this->time_at(step, after);
  for (const auto& c : in_time_) c.give(coefficients_[c.index()].ref(), cells, time);
}

#define ISOHALO_INSTANTIATE(T, D)                     \
  template class FieldStepper<T, D, HostParts<T, D>>; \
  template class StateStepper<T, D>;
ISOHALO_FOR_EACH_FIELD(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
