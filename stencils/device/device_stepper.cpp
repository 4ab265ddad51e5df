#include "stencils/device/device_stepper.hpp"

#include "datatypes/error.hpp"
#include "framework/schedule/stopwatch.hpp"

namespace isohalo {

template <class T, int D, class Space>
DeviceStepper<T, D, Space>::DeviceStepper(const StateFields& names, const CartesianDomain<D>& domain,
                                          const StateShapes<D>& shapes, const std::vector<BoundaryRules<D>>& rules,
                                          int depth, const MakeKernels& make_kernels, Exchange exchange)
    : Base(names, domain, shapes, rules, depth, make_kernels, exchange, {}, true),
      sum_(reducer_),
      host_(copies_of(now_, now_.size())),
      host_before_(copies_of(next_, names.before.size())),
      host_coefficients_(copies_of(coefficients_, coefficients_.size())) {
  if (this->previous_exchanged()) this->overlap_by(false);
  for (int m = 0; m <= deepest_; ++m) {
    const auto boxes = shapes.all.needed_boxes(domain.owned(), m, around_);
    levels_.push_back({boxes, detail::without(boxes, sum_.cells())});
  }
  images_ = images();
  if (!inner_.empty()) rest_ = detail::without(level(deepest_ - 1).boxes, inner_);
}

template <class T, int D, class Space>
std::vector<FieldHandle<D>> DeviceStepper<T, D, Space>::fields() {
  if (std::exchange(host_is_behind_, false)) {
    for (std::size_t f = 0; f < host_.size(); ++f) host_[f].bring_from(now_[f]);
    for (std::size_t f = 0; f < host_before_.size(); ++f) host_before_[f].bring_from(next_[f]);
  }
  return this->handles(host_, host_before_);
}

template <class T, int D, class Space>
std::vector<FieldHandle<D>> DeviceStepper<T, D, Space>::coefficients() {
  return this->coefficient_handles(host_coefficients_);
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::start() {
  for (std::size_t c = 0; c < coefficients_.size(); ++c) host_coefficients_[c].take_to(coefficients_[c]);
  Base::start();
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::fields_changed() {
  for (std::size_t f = 0; f < host_.size(); ++f) host_[f].take_to(now_[f]);
  for (std::size_t f = 0; f < host_before_.size(); ++f) host_before_[f].take_to(next_[f]);
  Base::fields_changed();
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
  const detail::Stopwatch watch(either_way);
  const double sum = Base::step(change, !change && overlap_.way() == 1);
  if (either_way) {
    Space().fence();
    const double seconds = watch.seconds();
    const PhaseScope scope(phases_, Phase::exchange);  // in the last step of the trial ranks wait for each other
    overlap_.took(seconds, &domain_.comm());
  }
  return sum;
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::sweep_stage(const Kernel& kernel, const Fields& in, const Fields& out, int stage,
                                             bool interior_done) {
  const PhaseScope scope(phases_, Phase::sweep);
  const auto from = this->reads(in, out, stage), to = this->addresses(out, writes_);
  for (const Box<D>& b : interior_done ? rest_ : level(steps_left_).boxes)
    kernel.sweep(b, this->field(), from, to, images_);
  ghosts_written_ = images_.any() && !interior_done;
  host_is_behind_ = true;
}

template <class T, int D, class Space>
double DeviceStepper<T, D, Space>::sweep_stage_with_change(const Kernel& kernel, const Fields& in,
                                                           const Fields& out, int stage) {
  const auto from = this->reads(in, out, stage), to = this->addresses(out, writes_);
  const auto before = this->addresses(now_, before_);
  {
    const PhaseScope scope(phases_, Phase::sweep);
    kernel.sweep_with_change(sum_, this->field(), from, to, before, images_);
    for (const Box<D>& b : level(steps_left_).beside_tiles) kernel.sweep(b, this->field(), from, to, {});
  }
  ghosts_written_ = images_.any();
  const PhaseScope scope(phases_, Phase::reduction);
  sum_.form_cut(detail::ChangeAt<T>::of(to, before), this->field());
  sum_.take();
  return reducer_.combine();
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::sweep_interior(const Fields& u) {
  const PhaseScope scope(phases_, Phase::sweep);
  this->kernel(0, 0).sweep(inner_, this->field(), this->reads(u, next_, 0), this->addresses(next_, writes_), {});
}

template <class T, int D, class Space>
void DeviceStepper<T, D, Space>::bring_coefficients(int further, int stage) {
  const PhaseScope scope(phases_, Phase::sweep);
  const double time = this->time_at(step_, this->after(stage));
  for (const auto& c : in_time_)
    host_coefficients_[c.index()].give(c, level(further).boxes, time, coefficients_[c.index()]);
}

template <class T, int D, class Space>
double DeviceStepper<T, D, Space>::change_of_step() {
  const Fields& before = names_.stages % 2 == 1 ? next_ : third_;
  return sum_of(detail::ChangeAt<T>::of(this->addresses(now_, writes_), this->addresses(before, before_)));
}

/// On one rank whose ghosts are all its own cells, and a layer of each: with a layer, where rows are padded, of
/// whole sectors, since a device reads the rest of one that is written in part.
template <class T, int D, class Space>
detail::Images<D> DeviceStepper<T, D, Space>::images() const {
  detail::Images<D> images;
  const ArrayRef<T, D>& u = this->field();
  if (domain_.comm().size() > 1 || deepest_ > 1) return images;
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
DeviceStepper<T, D, Space>::~DeviceStepper() = default;

#define ISOHALO_INSTANTIATE(T, D) template class DeviceField<T, D, DeviceSpace>;
ISOHALO_FOR_EACH_FIELD(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

#define ISOHALO_INSTANTIATE(T, D)                                    \
  template class DeviceOutside<T, D, DeviceSpace>;                   \
  template class FieldStepper<T, D, DeviceParts<T, D, DeviceSpace>>; \
  template class DeviceStepper<T, D, DeviceSpace>;
ISOHALO_FOR_EACH_DEVICE_FLOAT(ISOHALO_INSTANTIATE)
ISOHALO_INSTANTIATE(std::uint8_t, 2)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
