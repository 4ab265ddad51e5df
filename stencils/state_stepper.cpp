#include "stencils/state_stepper.hpp"

#include <algorithm>
#include <chrono>

#include "datatypes/box.hpp"
#include "stencils/boundary.hpp"
#include "stencils/boxes.hpp"

namespace isohalo {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

template <class T, int D>
StateStepper<T, D>::StateStepper(const StateFields& names, const CartesianDomain<D>& domain,
                                 const StencilShape<D>& shape, const std::vector<BoundaryRules<D>>& rules,
                                 int depth, const MakeKernels& make_kernels, Exchange exchange)
    : names_(names),
      domain_(domain),
      around_(names.topology(rules, domain.global())),
      halo_options_{around_.mirror_low, around_.mirror_high, exchange, host_workers()},
      shape_(shape),
      deepest_(names.reaches(depth)),
      reducer_(domain),
      overlap_(overlap_ways(names.stages > 1 ? Overlap::never : Overlap::automatic, domain.comm())),
      previous_read_(!names.before.empty()) {
  const FieldMemory memory = field_memory(exchange, domain.comm());
  agreed(domain.comm(), [&] {  // since what follows is collective
    now_ = make_fields(names.state, "", memory);
    next_ = make_fields(names.state, " (next)", memory);
    if (names.stages > 1) third_ = make_fields(names.state, " (stage)", memory);
    coefficients_ = make_fields(names.coefficients, "", memory);
  });
  kernels_ = make_kernels(now_[0].ref().stride);
  const BoundaryTopology<D>& around = around_;
  const auto layers = shape.ghost_widths(1, around);
  layers_low_ = layers[0];
  layers_high_ = layers[1];
  for (const BoundaryRules<D>& of_field : rules)
    outside_.emplace_back(of_field, domain.global(), layers_low_, layers_high_);
  for (int m = 0; m <= deepest_; ++m) {
    const auto boxes = shape.needed_boxes(domain.owned(), m, around);
    Level level;
    level.bounds = detail::reachable(domain.owned(), shape, m, around);
    level.all = in_orders(boxes);
    level.around = detail::without(boxes, domain.owned());
    level.shell = SweepRegion<D>(level.around);
    level.boxes = boxes;
    std::stable_sort(level.boxes.begin(), level.boxes.end(),
                     [](const Box<D>& a, const Box<D>& b) { return a.cells() > b.cells(); });
    levels_.push_back(std::move(level));
  }
  for (const Fields* list : {&now_, &next_, &third_})
    for (std::size_t f = 0; f < list->size(); ++f)
      outside_[f].fill_for_good((*list)[f].ref(), levels_.back().bounds);
  // By planes for a gain of a tenth: where they write past the caches they were seen to take a third longer or not,
  // by where in memory the stack lies (docs/performance.md).
  if (D > 2) orders_ = FastestWay::of(2, kernels_[0]->reads_what_it_writes() ? 0.98 : 0.9);
  if (D > 1) lead_ = layers_high_[0] * now_[0].ref().stride[0];
  go_deep(depth);
}

template <class T, int D>
typename StateStepper<T, D>::Region StateStepper<T, D>::in_orders(const std::vector<Box<D>>& boxes) const {
  const auto cell_bytes = static_cast<std::int64_t>(names_.state.size() * sizeof(T));
  return {SweepRegion<D>(boxes, 1 + layers_low_[0] + layers_high_[0], cell_bytes),
          D < 3 ? SweepRegion<D>() : SweepRegion<D>(boxes, 0, 0)};
}

template <class T, int D>
HaloPlan<D>& StateStepper<T, D>::plan_of(int sweeps) {
  if (const auto made = plans_.find(sweeps); made != plans_.end()) return made->second;
  HaloOptions<D> options = halo_options_;
  // What was the fastest for one depth is that, or nearly, for another; its trial takes as long as many steps.
  if (options.exchange == Exchange::automatic && !plans_.empty()) options.exchange = exchange().used;
  return plans_.try_emplace(sweeps, domain_, shape_, sweeps, options).first->second;
}

template <class T, int D>
void StateStepper<T, D>::go_deep(int depth) {
  depth_ = depth;
  sweeps_ = names_.reaches(depth);
  plan();
  Index<D> reach;
  for (int j = 0; j < D; ++j) reach[j] = std::max(layers_low_[j], layers_high_[j]);
  const auto cell_bytes = static_cast<std::int64_t>(names_.arrays() * sizeof(T));
  tilings_.try_emplace(sweeps_, TileSizes<D>::of(domain_.owned().extents(), reach, cell_bytes, 64 / sizeof(T),
                                                 sweeps_, host_threads(), forced_tile_));
  if (names_.stages > 1 || (sweeps_ > 1 && !always_overlaps_)) return;
  const Box<D> inner = detail::without_ghosts(domain_, layers_low_, layers_high_);
  interior_ = in_orders({inner});
  rest_ = SweepRegion<D>(detail::without(shape_.needed_boxes(domain_.owned(), sweeps_ - 1, around_), inner));
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
void StateStepper<T, D>::overlap_by(Overlap mode) {
  if (names_.stages > 1) return;
  overlap_ = overlap_ways(mode, domain_.comm());
  always_overlaps_ = mode == Overlap::always;
  go_deep(depth_);
}

template <class T, int D>
std::vector<FieldHandle<D>> StateStepper<T, D>::fields() {
  std::vector<FieldHandle<D>> all;
  for (std::size_t f = 0; f < now_.size(); ++f) all.push_back({names_.state[f], "1", "state", now_[f].ref()});
  for (std::size_t f = 0; f < names_.before.size(); ++f)
    all.push_back({names_.before[f], "1", "auxiliary", next_[f].ref()});
  return all;
}

template <class T, int D>
std::vector<FieldHandle<D>> StateStepper<T, D>::coefficients() {
  std::vector<FieldHandle<D>> all;
  for (std::size_t c = 0; c < coefficients_.size(); ++c)
    all.push_back({names_.coefficients[c], "1", "auxiliary", coefficients_[c].ref()});
  return all;
}

template <class T, int D>
std::string StateStepper<T, D>::sweeps() const {
  if (sweeps_ > 1 && time_tile_[0] > 0) {
    std::string text;
    for (int j = 0; j < D; ++j)
      text += (j > 0 ? " x " : "") + std::to_string(std::min(time_tile_[j], domain_.owned().extent(j)));
    return "in tiles of " + text + " cells";
  }
  std::string text = Fetch::text(fetches_);
  if (D > 2 && orders_.decided()) text += orders_.way() == 0 ? ", rows in blocks" : ", plane by plane";
  if (overlap_.decided() && overlap_.way() == 1) text += ", while ghosts travel";
  return text;
}

template <class T, int D>
void StateStepper<T, D>::reduce_by(const ReductionOptions& options) {
  reducer_.reduce_by(options);
  exchange_ghosts(now_, false);
}

template <class T, int D>
void StateStepper<T, D>::start() {
  if (!coefficients_.empty()) {
    plan_of(deepest_).exchange(erased({&coefficients_}));
    const BoundaryRules<D> mirrored = detail::mirrored_rules(around_);
    for (const Field<T, D>& c : coefficients_)
      fill_outside(c.ref(), mirrored, domain_.global(), levels_.back().bounds, layers_low_, layers_high_);
  }
  fields_changed();
}

template <class T, int D>
const ArrayRef<T, D>& StateStepper<T, D>::ready() {
  bring_ghosts(now_, false);
  return now_[0].ref();
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
    if (trial && steps_left_ == 0) {
      depth_choice_.end_block(domain_.comm());
      if (depth_choice_.depth() != depth_) go_deep(depth_choice_.depth());
    }
    const auto start = Clock::now();
    const std::int64_t done = advance_some(left, change, sum);
    if (trial && !tiles_tried_) depth_choice_.took(seconds_since(start), done);
    left -= done;
  }
  return sum;
}

template <class T, int D>
std::int64_t StateStepper<T, D>::advance_some(std::int64_t most, bool change, double& sum) {
  const int left = steps_left_ == 0 ? sweeps_ : steps_left_;
  const int steps = static_cast<int>(std::min<std::int64_t>(most, left));
  const bool overlapped = steps_left_ == 0 && overlaps();
  tiles_tried_ = false;
  if (steps < 2 || names_.stages > 1 || overlapped) {
    sum = step(change && most == 1);
    return 1;
  }
  change = change && steps == most;
  bring_ghosts(now_, false);
  {
    const PhaseScope scope(phases_, Phase::sweep);
    const auto level = [&](int q) -> const Level& {
      return levels_[static_cast<std::size_t>(steps_left_ - 1 - q)];
    };
    TileSizes<D>& tiling = tilings_.at(sweeps_);
    const TimeTiles<D>& tiles = tiling.now(change);
    time_tile_ = tiles.extents;
    const bool whole = steps + (always_overlaps_ ? 1 : 0) >= sweeps_;  // others take other times
    tiles_tried_ = whole && !tiling.ways[change].decided();
    const auto start = Clock::now();
    (change ? tiles.in_units(reducer_.tile()) : tiles)
        .for_each_part(
            steps, [&](int q) -> const Box<D>& { return level(q).bounds; },
            [&](int q, const Box<D>& part) { sweep_part(level(q), part, q, steps, change); });
    if (whole) tiling.ways[change].took(seconds_since(start));
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
void StateStepper<T, D>::sweep_part(const Level& level, const Box<D>& part, int q, int steps, bool change) {
  const bool last = q + 1 == steps;
  // In place but for the last two steps, where their change is wanted: it needs the old values.
  const int in_place = !in_place_ ? 0 : change ? steps - 2 : steps;
  const bool turned = q >= in_place && (q - in_place) % 2;
  const Fields &from = turned ? next_ : now_, &to = turned || q < in_place ? now_ : next_;
  const RowUpdate<T, D> update = this->update(kernel(0, q), from, to, 0);
  const Box<D> owned = part.intersect(domain_.owned());  // its change, where it is wanted
  const bool summed = last && change && !owned.empty();
  const bool replaced = summed && change_over_two_;
  std::int64_t left = part.cells();
  if (replaced) {
    if (!in_time_.empty()) bring_coefficients(owned, step_ + q, 0);
    sweep_box_with_change(reducer_, scratch_, owned, update, addresses(to, before_));
    left -= owned.cells();
  }
  for (const Box<D>& b : replaced ? level.around : level.boxes) {
    if (left == 0) break;
    const Box<D> common = b.intersect(part);
    if (common.empty()) continue;
    if (!in_time_.empty()) bring_coefficients(common, step_ + q, 0);
    sweep_box(common, update);
    left -= common.cells();
  }
  if (!last) return fill_outside_of(to, with_mirrored(part, level.bounds), step_ + q + 1, 0);
  if (summed && !replaced)
    change_in_box(reducer_, scratch_, owned, update.like, update.out, addresses(from, before_));
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
void StateStepper<T, D>::sweep_before(const RowKernel<T, D>& kernel) {
  bring_ghosts(now_, false);
  bring_coefficients(levels_.front().all.in_blocks, step_, 0);
  sweep(levels_.front().all.in_blocks, update(kernel, now_, next_, 0), fetch(fetches_));
  fields_changed();
}

template <class T, int D>
typename StateStepper<T, D>::Fields StateStepper<T, D>::make_fields(const std::vector<std::string>& names,
                                                                    const char* suffix, FieldMemory memory) const {
  Fields all;
  const auto ghosts = shape_.ghost_widths(deepest_, around_);
  for (const auto& name : names) all.emplace_back(name + suffix, domain_.owned(), ghosts[0], ghosts[1], memory);
  return all;
}

template <class T, int D>
std::span<const ErasedArray<D>> StateStepper<T, D>::erased(std::initializer_list<const Fields*> lists) {
  erased_.clear();
  for (const Fields* list : lists)
    for (const Field<T, D>& u : *list) erased_.push_back(erase(u.ref()));
  return erased_;
}

template <class T, int D>
std::span<T* const> StateStepper<T, D>::addresses(const Fields& fields, Addresses& list) {
  list.clear();
  for (const Field<T, D>& u : fields) list.push_back(u.ref().data);
  return list;
}

template <class T, int D>
RowUpdate<T, D> StateStepper<T, D>::update(const RowKernel<T, D>& kernel, const Fields& in, const Fields& out,
                                           int stage) {
  addresses(in, reads_);
  const Fields* own = names_.stages > 1 && stage > 0 ? &now_ : names_.before.empty() ? nullptr : &out;
  if (own)
    for (const Field<T, D>& u : *own) reads_.push_back(u.ref().data);
  for (const Field<T, D>& c : coefficients_) reads_.push_back(c.ref().data);
  return {kernel, in[0].ref(), reads_, addresses(out, writes_)};
}

template <class T, int D>
double StateStepper<T, D>::step(bool change) {
  // Not by what this rank has: its neighbors may have an interior where it has none.
  const bool either_way = !change && steps_left_ == 0 && sweeps_ == 1 && sweeps_decided() && !overlap_.decided();
  const auto start = Clock::now();
  const double sum = step(change, !change && overlaps());
  const double seconds = seconds_since(start);
  const PhaseScope scope(phases_, Phase::exchange);  // in the last step of a trial ranks wait for each other
  if (either_way) overlap_.took(seconds, &domain_.comm());
  if (steps_left_ == 0)
    (change ? fetches_with_change_ : fetches_.decided() ? orders_ : fetches_).took(seconds, &domain_.comm());
  return sum;
}

template <class T, int D>
double StateStepper<T, D>::step(bool change, bool overlap) {
  const int last = names_.stages - 1;
  double sum = 0;
  for (int stage = 0; stage <= last; ++stage) {
    Fields& in = stage == 0 ? now_ : stage % 2 == 1 ? next_ : third_;
    Fields& out = stage % 2 == 0 ? next_ : third_;
    stage_ = stage;
    sum = sweep_stage(stage, in, out, change && stage == last, overlap);
  }
  stage_ = 0;
  ++step_;
  std::swap(now_, last % 2 == 0 ? next_ : third_);
  return sum;
}

template <class T, int D>
double StateStepper<T, D>::sweep_stage(int stage, const Fields& in, const Fields& out, bool change, bool overlap) {
  const int depth = steps_left_ == 0 ? sweeps_ : steps_left_;
  // Before the ghosts come, since the interior may be swept meanwhile.
  bring_coefficients(levels_[static_cast<std::size_t>(depth - 1)].all.in_blocks, step_, time_of_stage());
  const bool interior_done = bring_ghosts(in, overlap && interior_.in_blocks.size() > 0);
  --steps_left_;
  const Level& level = levels_[static_cast<std::size_t>(steps_left_)];
  const RowUpdate<T, D> update = this->update(kernel(stage, 0), in, out, stage);
  const PhaseScope scope(phases_, Phase::sweep);
  if (!change) {
    sweep(interior_done ? rest_ : ordered(level.all), update, fetch(fetches_));
    return 0;
  }
  const Fields& before = change_over_two_ ? out : now_;
  sweep_with_change<T, D>(reducer_, scratch_, update, addresses(before, before_), fetch(fetches_with_change_));
  sweep(level.shell, update, {});
  const PhaseScope reduction(phases_, Phase::reduction);
  return reducer_.combine();
}

template <class T, int D>
bool StateStepper<T, D>::bring_ghosts(const Fields& u, bool overlap) {
  bool interior_done = false;
  if (steps_left_ == 0) {
    const PhaseScope scope(phases_, Phase::exchange);
    interior_done = exchange_ghosts(u, overlap);
    steps_left_ = sweeps_;
  }
  const PhaseScope scope(phases_, Phase::boundary);
  fill_outside_of(u, levels_[static_cast<std::size_t>(steps_left_)].bounds, step_, time_of_stage());
  return interior_done;
}

template <class T, int D>
void StateStepper<T, D>::fill_outside_of(const Fields& fields, const Box<D>& valid, std::int64_t step,
                                         double after) {
  const double time = time_at(step, after);
  for (std::size_t f = 0; f < fields.size(); ++f) outside_[f].fill(fields[f].ref(), valid, time);
}

template <class T, int D>
template <class Cells>
void StateStepper<T, D>::bring_coefficients(const Cells& cells, std::int64_t step, double after) {
  if (in_time_.empty()) return;
  const PhaseScope scope(phases_, Phase::sweep);
  const double time = time_at(step, after);
  for (const auto& [c, values] : in_time_) give_values(coefficients_[c].ref(), cells, values, time);
}

template <class T, int D>
std::span<const ErasedArray<D>> StateStepper<T, D>::to_exchange(const Fields& u) {
  return previous_exchanged() ? erased({&u, &next_}) : erased({&u});
}

template <class T, int D>
bool StateStepper<T, D>::exchange_ghosts(const Fields& u, bool overlap) {
  if (!overlap) {
    plan().exchange(to_exchange(u));
    return false;
  }
  HaloPlan<D>& plan = this->plan();
  plan.start(to_exchange(u));
  // After `start` the ghosts copied within this rank are in place, unless they wait for an earlier stage.
  overlap = plan.choice().used.pattern != HaloPattern::slabs;
  if (overlap) {
    {
      const PhaseScope scope(phases_, Phase::boundary);
      fill_outside_of(u, detail::in_place(domain_, levels_[static_cast<std::size_t>(sweeps_)].bounds), step_,
                      time_of_stage());
    }
    const SweepRegion<D>& interior = ordered(interior_);
    const std::int64_t parts = std::min(kParts, interior.size());
    for (std::int64_t part = 0; part < parts; ++part) {
      {
        const PhaseScope scope(phases_, Phase::sweep);
        sweep(interior, update(kernel(0, 0), u, next_, 0), fetch(fetches_), part, parts);
      }
      plan.progress();
    }
  }
  plan.finish();
  return overlap;
}

#define ISOHALO_INSTANTIATE(D)            \
  template class StateStepper<double, D>; \
  template class StateStepper<float, D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE
template class StateStepper<std::uint8_t, 2>;

}  // namespace isohalo
