#include "stencils/device/device_stepper.hpp"

#include <chrono>

#include "datatypes/error.hpp"

namespace isohalo {

template <class T, int D, class Space>
DeviceStepper<T, D, Space>::DeviceStepper(const StateFields& names, const CartesianDomain<D>& domain,
                                          const StencilShape<D>& shape, const std::vector<BoundaryRules<D>>& rules,
                                          int depth, const MakeKernels& make_kernels, Exchange exchange)
    : names_(names),
      domain_(domain),
      around_(names.topology(rules, domain.global())),
      depth_(depth),
      plan_(domain, shape, names.reaches(depth),
            HaloOptions<D>{around_.mirror_low, around_.mirror_high, exchange, {}, true}),
      reducer_(domain),
      sum_(reducer_),
      now_(make_fields(names.state, "")),
      next_(make_fields(names.state, " (next)")),
      coefficients_(make_fields(names.coefficients, "")),
      host_(copies_of(now_, now_.size())),
      host_before_(copies_of(next_, names.before.size())),
      host_coefficients_(copies_of(coefficients_, coefficients_.size())),
      kernels_(make_kernels(now_[0].ref().stride)),
      previous_exchanged_(!names.before.empty() && plan_.depth() > 1),
      overlap_(overlap_ways(Overlap::automatic, domain.comm())) {
  overlap_by(Overlap::automatic);
  if (names.stages > 1) third_ = make_fields(names.state, " (stage)");
  const auto layers = shape.ghost_widths(1, around_);
  layers_low_ = layers[0];
  layers_high_ = layers[1];
  for (const BoundaryRules<D>& of_field : rules)
    outside_.emplace_back(of_field, domain.global(), layers_low_, layers_high_);
  for (int m = 0; m <= plan_.depth(); ++m) {
    const auto boxes = shape.needed_boxes(domain.owned(), m, around_);
    levels_.push_back(
        {detail::reachable(domain.owned(), shape, m, around_), boxes, detail::without(boxes, sum_.cells())});
  }
  images_ = images();
  const Box<D> inner = detail::without_ghosts(domain, layers_low_, layers_high_);
  if (inner.empty()) return;
  interior_ = {inner};
  rest_ = detail::without(levels_[static_cast<std::size_t>(plan_.depth() - 1)].boxes, inner);
}

template <class T, int D, class Space>
std::vector<FieldHandle<D>> DeviceStepper<T, D, Space>::fields() {
  if (std::exchange(host_is_behind_, false)) {
    for (std::size_t f = 0; f < host_.size(); ++f) host_[f].bring_from(now_[f]);
    for (std::size_t f = 0; f < host_before_.size(); ++f) host_before_[f].bring_from(next_[f]);
  }
  std::vector<FieldHandle<D>> all;
  for (std::size_t f = 0; f < host_.size(); ++f) all.push_back({names_.state[f], "1", "state", host_[f].ref()});
  for (std::size_t f = 0; f < host_before_.size(); ++f)
    all.push_back({names_.before[f], "1", "auxiliary", host_before_[f].ref()});
  return all;
}

template <class T, int D, class Space>
std::vector<FieldHandle<D>> DeviceStepper<T, D, Space>::coefficients() {
  std::vector<FieldHandle<D>> all;
  for (std::size_t c = 0; c < host_coefficients_.size(); ++c)
    all.push_back({names_.coefficients[c], "1", "auxiliary", host_coefficients_[c].ref()});
  return all;
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::reduce_by(const ReductionOptions& options) {
  reducer_.reduce_by(options);
  exchange_ghosts(now_, false);  // sets up exchanges, since what that takes belongs to no step
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::start() {
  if (!coefficients_.empty()) {
    erased_.clear();
    for (std::size_t c = 0; c < coefficients_.size(); ++c) {
      host_coefficients_[c].take_to(coefficients_[c]);
      erased_.push_back(coefficients_[c].erased());
    }
    plan_.exchange(erased_);
    DeviceOutside<T, D, Space> mirrored(detail::mirrored_rules(around_), domain_.global(), layers_low_,
                                        layers_high_);
    for (const auto& c : coefficients_) mirrored.fill(c.ref(), levels_.back().bounds, 0);
  }
  fields_changed();
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::fields_changed() {
  for (std::size_t f = 0; f < host_.size(); ++f) host_[f].take_to(now_[f]);
  for (std::size_t f = 0; f < host_before_.size(); ++f) host_before_[f].take_to(next_[f]);
  steps_left_ = 0;
  ghosts_written_ = false;
}

template <class T, int D, class Space>
double DeviceStepper<T, D, Space>::advance(std::int64_t steps, bool change) {
  double sum = 0;
  for (std::int64_t k = 0; k < steps; ++k) sum = step(change && k + 1 == steps);
  host_is_behind_ = true;
  const PhaseScope scope(phases_, Phase::sweep);
  Space().fence();
  return sum;
}

template <class T, int D, class Space>
double DeviceStepper<T, D, Space>::step(bool change) {
  const bool either_way = !change && steps_left_ == 0 && !overlap_.decided();  // the same on all ranks
  if (either_way) Space().fence();  // what is still to be computed belongs to steps before
  const auto start = std::chrono::steady_clock::now();
  const double sum = step(change, !change && overlap_.way() == 1);
  if (either_way) {
    Space().fence();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const PhaseScope scope(phases_, Phase::exchange);  // in the last step of the trial ranks wait for each other
    overlap_.took(seconds, &domain_.comm());
  }
  return sum;
}

template <class T, int D, class Space>
double DeviceStepper<T, D, Space>::step(bool change, bool overlap) {
  const int last = names_.stages - 1;
  double sum = 0;
  for (int stage = 0; stage <= last; ++stage) {
    const Fields& in = stage == 0 ? now_ : stage % 2 == 1 ? next_ : third_;
    const Fields& out = stage % 2 == 0 ? next_ : third_;
    // Before the ghosts come, since the interior may be swept meanwhile.
    bring_coefficients(levels_[static_cast<std::size_t>((steps_left_ ? steps_left_ : plan_.depth()) - 1)],
                       time_of(stage));
    const bool interior_done = bring_ghosts(in, stage, overlap);
    const Level& level = levels_[static_cast<std::size_t>(--steps_left_)];
    const auto& kernel = *kernels_[static_cast<std::size_t>(stage)];
    const Refs &from = reads(in, next_, stage), &to = refs(out, writes_);
    if (change && stage == last)
      sum = sweep_with_change(kernel, level, from, to);
    else
      sweep(kernel, interior_done ? rest_ : level.boxes, from, to, images_);
    ghosts_written_ = images_.any() && !interior_done;
  }
  ++step_;
  std::swap(now_, last % 2 == 0 ? next_ : third_);
  return sum;
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::sweep_before(const DeviceKernel<T, D, Space>& kernel) {
  bring_ghosts(now_, 0, false);
  bring_coefficients(levels_.front(), time_of(0));
  sweep(kernel, levels_.front().boxes, reads(now_, next_, 0), refs(next_, writes_));
  steps_left_ = 0;
  host_is_behind_ = true;
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::sweep(const DeviceKernel<T, D, Space>& kernel, const std::vector<Box<D>>& boxes,
                                       const Refs& in, const Refs& out, const detail::Images<D>& images) const {
  const PhaseScope scope(phases_, Phase::sweep);
  for (const Box<D>& b : boxes) kernel.sweep(b, in, out, images);
}

template <class T, int D, class Space>
double DeviceStepper<T, D, Space>::sweep_with_change(const DeviceKernel<T, D, Space>& kernel, const Level& level,
                                                     const Refs& in, const Refs& out) {
  {
    const PhaseScope scope(phases_, Phase::sweep);
    kernel.sweep_with_change(sum_, in, out, refs(now_, before_), images_);
  }
  sweep(kernel, level.beside_tiles, in, out);
  const PhaseScope scope(phases_, Phase::reduction);
  sum_.form_cut(detail::ChangeAt<T>::template of<D>(out, before_), out[0]);
  sum_.take();
  return reducer_.combine();
}

template <class T, int D, class Space>
double DeviceStepper<T, D, Space>::change_of_step() {
  return sum_of(detail::ChangeAt<T>::template of<D>(refs(now_, writes_),
                                                    refs(names_.stages % 2 == 1 ? next_ : third_, before_)));
}

template <class T, int D, class Space>
bool DeviceStepper<T, D, Space>::bring_ghosts(const Fields& u, int stage, bool overlap) {
  bool interior_done = false;
  if (steps_left_ == 0) {
    const PhaseScope scope(phases_, Phase::exchange);
    if (!ghosts_written_) interior_done = exchange_ghosts(u, overlap);
    steps_left_ = plan_.depth();
  }
  fill_outside(u, levels_[static_cast<std::size_t>(steps_left_)].bounds, stage);
  return interior_done;
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::fill_outside(const Fields& u, const Box<D>& valid, int stage) {
  const PhaseScope scope(phases_, Phase::boundary);
  for (std::size_t f = 0; f < u.size(); ++f) outside_[f].fill(u[f].ref(), valid, time_of(stage));
}

template <class T, int D, class Space>
bool DeviceStepper<T, D, Space>::exchange_ghosts(const Fields& u, bool overlap) {
  erased_.clear();
  for (const auto& field : u) erased_.push_back(field.erased());
  if (previous_exchanged_)  // steps read the fields a step before in the ghosts, too
    for (const auto& field : next_) erased_.push_back(field.erased());
  if (!overlap || interior_.empty()) {
    plan_.exchange(erased_);
    return false;
  }
  plan_.start(erased_);
  // By slabs the ghosts that are copied within this rank wait for an earlier stage.
  overlap = plan_.choice().used.pattern != HaloPattern::slabs;
  if (overlap) {
    fill_outside(u, detail::in_place(domain_, levels_[static_cast<std::size_t>(plan_.depth())].bounds), 0);
    sweep(*kernels_[0], interior_, reads(u, next_, 0), refs(next_, writes_));
  }
  plan_.finish();
  return overlap;
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::bring_coefficients(const Level& level, double time) {
  const PhaseScope scope(phases_, Phase::sweep);
  for (const auto& [c, values] : in_time_) {
    for (const Box<D>& box : level.boxes) give_values(host_coefficients_[c].ref(), box, values, time);
    host_coefficients_[c].take_to(coefficients_[c]);
  }
}

template <class T, int D, class Space>
typename DeviceStepper<T, D, Space>::Fields DeviceStepper<T, D, Space>::make_fields(
    const std::vector<std::string>& names, const char* suffix) const {
  Fields all;
  for (const auto& name : names)
    all.emplace_back(name + suffix, domain_.owned(), plan_.ghost_low(), plan_.ghost_high());
  return all;
}

/// On one rank whose ghosts are all its own cells, and a layer of each: with a layer, where rows are padded, of
/// whole sectors, since a device reads the rest of one that is written in part.
template <class T, int D, class Space>
detail::Images<D> DeviceStepper<T, D, Space>::images() const {
  detail::Images<D> images;
  const ArrayRef<T, D>& u = field();
  if (domain_.comm().size() > 1 || plan_.depth() > 1) return images;
  for (int j = 0; j < D; ++j) {
    if (!around_.periodic[j]) continue;
    const std::int64_t extent = u.owned.extent(j);
    std::int64_t low = layers_high_[j], high = layers_low_[j];
    constexpr std::int64_t sector = DeviceField<T, D, Space>::kSector;
    if (j == D - 1 && u.ghost_low[j] >= sector && u.ghost_high[j] >= sector)
      low = std::max(low, sector), high = std::max(high, sector);
    if (extent < low + high || extent >> 32) return {};
    images.add(j, extent, u.stride[j], low, high);
  }
  return images;
}

template <class T, int D, class Space>
typename DeviceStepper<T, D, Space>::Copies DeviceStepper<T, D, Space>::copies_of(const Fields& fields,
                                                                                  std::size_t n) {
  Copies all;
  for (std::size_t f = 0; f < n; ++f) all.emplace_back(fields[f]);
  return all;
}

template <class T, int D, class Space>
const typename DeviceStepper<T, D, Space>::Refs& DeviceStepper<T, D, Space>::refs(const Fields& fields,
                                                                                  Refs& list) {
  list.clear();
  for (const auto& u : fields) list.push_back(u.ref());
  return list;
}

template <class T, int D, class Space>
const typename DeviceStepper<T, D, Space>::Refs& DeviceStepper<T, D, Space>::reads(const Fields& in,
                                                                                   const Fields& before,
                                                                                   int stage) {
  refs(in, reads_);
  const Fields* own = stage > 0 ? &now_ : names_.before.empty() ? nullptr : &before;
  if (own)
    for (const auto& u : *own) reads_.push_back(u.ref());
  for (const auto& c : coefficients_) reads_.push_back(c.ref());
  return reads_;
}

template <class T, int D, class Space>
DeviceStepper<T, D, Space>::~DeviceStepper() = default;

#define ISOHALO_INSTANTIATE(D)                          \
  template class DeviceField<double, D, DeviceSpace>;   \
  template class DeviceField<float, D, DeviceSpace>;    \
  template class DeviceOutside<double, D, DeviceSpace>; \
  template class DeviceOutside<float, D, DeviceSpace>;  \
  template class DeviceStepper<double, D, DeviceSpace>; \
  template class DeviceStepper<float, D, DeviceSpace>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE
// Of life.
template class DeviceField<std::uint8_t, 2, DeviceSpace>;
template class DeviceOutside<std::uint8_t, 2, DeviceSpace>;
template class DeviceStepper<std::uint8_t, 2, DeviceSpace>;

}  // namespace isohalo
