#include "framework/halo/halo_plan.hpp"

#include <algorithm>
#include <string>

#include "datatypes/error.hpp"
#include "framework/halo/halo_mover.hpp"
#include "framework/halo/packed_mover.hpp"

namespace isohalo {

template <int D>
struct HaloPlan<D>::Impl {
  /// What moves arrays of these element sizes.
  struct Prepared {
    std::vector<std::int64_t> element_bytes;
    std::unique_ptr<detail::HaloMover<D>> mover;
  };

  CartesianDomain<D> domain;
  StencilShape<D> shape;
  int depth;
  HaloOptions<D> options;
  Surroundings<D> around;
  Index<D> ghost_low, ghost_high;
  int first_tag;
  std::vector<Prepared> prepared;
  detail::HaloMover<D>* current = nullptr;  ///< of the exchange in flight

  Impl(const CartesianDomain<D>& d, const StencilShape<D>& s, int k, const HaloOptions<D>& o)
      : domain(d),
        shape(s),
        depth(k),
        options(o),
        around{d.global(), d.periodic(), o.mirror_low, o.mirror_high},
        first_tag(d.comm().take_tags(static_cast<int>(detail::kMaxArrays))) {
    if (k < 0) throw UsageError("halo depth " + std::to_string(k) + " is negative");
    refuse_unfit_exchange(o.exchange, s);
    const auto widths = s.ghost_widths(k, around);
    ghost_low = widths[0];
    ghost_high = widths[1];
  }

  HaloSchedule<D> schedule(Exchange exchange) const {
    return halo_schedule(pattern_of(exchange), domain.decomposition(), domain.coordinates(), shape, depth, around,
                         options.mutation);
  }

  std::unique_ptr<detail::HaloMover<D>> make_mover(Exchange exchange, std::span<const std::int64_t> bytes) const {
    if (is_packed(exchange))
      return std::make_unique<detail::PackedMover<D>>(domain, first_tag, schedule(exchange), bytes,
                                                      exchange == Exchange::shared);
    return std::make_unique<detail::DatatypeMover<D>>(domain, first_tag, schedule(exchange));
  }

  detail::HaloMover<D>& mover_for(std::span<const ErasedArray<D>> arrays) {
    for (const auto& p : prepared)
      if (std::equal(arrays.begin(), arrays.end(), p.element_bytes.begin(), p.element_bytes.end(),
                     [](const ErasedArray<D>& a, std::int64_t bytes) { return a.bytes == bytes; }))
        return *p.mover;
    std::vector<std::int64_t> bytes;
    for (const auto& a : arrays) bytes.push_back(a.bytes);
    auto mover = make_mover(options.exchange, bytes);
    prepared.push_back({std::move(bytes), std::move(mover)});
    return *prepared.back().mover;
  }

  void check_fits(const ErasedArray<D>& a) const {
    if (a.owned != domain.owned())
      throw UsageError("halo exchange: the array holds another box than this rank owns");
    for (int j = 0; j < D; ++j)
      if (a.ghost_low[j] < ghost_low[j] || a.ghost_high[j] < ghost_high[j])
        throw UsageError("halo exchange: the array has " +
                         std::to_string(std::min(a.ghost_low[j], a.ghost_high[j])) + " ghost layers in dimension " +
                         std::to_string(j) + ", the plan needs " +
                         std::to_string(std::max(ghost_low[j], ghost_high[j])));
  }
};

template <int D>
HaloPlan<D>::HaloPlan(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth,
                      const HaloOptions<D>& options)
    : impl_(std::make_unique<Impl>(domain, shape, depth, options)) {}
template <int D>
HaloPlan<D>::HaloPlan(HaloPlan&&) noexcept = default;
template <int D>
HaloPlan<D>& HaloPlan<D>::operator=(HaloPlan&&) noexcept = default;
template <int D>
HaloPlan<D>::~HaloPlan() = default;

template <int D>
void HaloPlan<D>::start(std::span<const ErasedArray<D>> arrays) {
  if (impl_->current)
    throw UsageError("halo exchange: start() while an exchange of this plan is in flight; call finish() first");
  if (arrays.size() > detail::kMaxArrays)
    throw UsageError("halo exchange: " + std::to_string(arrays.size()) + " arrays in one exchange; the limit is " +
                     std::to_string(detail::kMaxArrays));
  for (const auto& a : arrays) impl_->check_fits(a);
  auto& mover = impl_->mover_for(arrays);
  mover.start(arrays);
  impl_->current = &mover;
}

template <int D>
void HaloPlan<D>::finish() {
  if (!impl_->current) throw UsageError("halo exchange: finish() without start()");
  impl_->current->finish();
  impl_->current = nullptr;
}

template <int D>
int HaloPlan<D>::depth() const {
  return impl_->depth;
}
template <int D>
const Index<D>& HaloPlan<D>::ghost_low() const {
  return impl_->ghost_low;
}
template <int D>
const Index<D>& HaloPlan<D>::ghost_high() const {
  return impl_->ghost_high;
}

template <int D>
HaloCost HaloPlan<D>::cost() const {
  return impl_->schedule(impl_->options.exchange).cost();
}

template class HaloPlan<1>;
template class HaloPlan<2>;
template class HaloPlan<3>;
template class HaloPlan<4>;

}  // namespace isohalo
