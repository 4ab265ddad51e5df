#include "framework/halo/halo_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "datatypes/error.hpp"
#include "framework/halo/host_transport.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/schedule/chooser.hpp"

namespace isohalo {

template <int D>
struct HaloPlan<D>::Impl {
  using Transport = detail::HaloTransport<D>;
  using Arrays = std::span<const ErasedArray<D>>;

  /// What moves arrays of these element sizes.
  struct Prepared {
    std::vector<std::int64_t> element_bytes;
    const detail::KernelCopies<D>* kernels = nullptr;
    std::unique_ptr<Transport> transport;
    ExchangeChoice choice;
  };

  CartesianDomain<D> domain;
  std::vector<HaloNeed<D>> needs;  ///< one for all arrays, or one for each
  HaloOptions<D> options;
  BoundaryTopology<D> around;
  std::vector<std::array<Index<D>, 2>> ghosts;  ///< layers below and above, by need
  std::vector<std::unique_ptr<Prepared>> prepared;
  const Prepared* latest = nullptr;  ///< by which the latest exchange goes or went
  bool in_flight = false;
  int first_tag = 0;

  Impl(const CartesianDomain<D>& d, std::vector<HaloNeed<D>> n, const HaloOptions<D>& o)
      : domain(d), needs(std::move(n)), options(o), around{d.global(), d.periodic(), o.mirror_low, o.mirror_high} {
    std::vector<Argument> arguments;
    const auto error = error_of([&] {
      check_needs();
      arguments = compared();
    });
    agree_same(domain.comm(), "HaloPlan", arguments, error.get());
    // Only when all ranks make this plan: where one makes something else their counters would part for good.
    first_tag = domain.comm().take_tags(static_cast<int>(kMostArrays));
    for (const auto& need : needs) ghosts.push_back(geometry(need).widths());
  }

  void check_needs() const {
    if (needs.empty() || needs.size() > kMostArrays)
      throw UsageError("halo plan for " + std::to_string(needs.size()) + " arrays; there may be 1 to " +
                       std::to_string(kMostArrays));
    for (const auto& [shape, depth] : needs) {
      if (depth < 0) throw UsageError("halo depth " + std::to_string(depth) + " is negative");
      refuse_unfit_exchange(options.exchange, shape);
    }
  }

  std::vector<Argument> compared() const {
    std::vector<Argument> list{{"number of needs", std::to_string(needs.size())}};
    for (const auto& [shape, depth] : needs) {
      const std::string which = needs.size() == 1 ? "" : " of array " + std::to_string(list.size() / 2);
      list.push_back({"depth" + which, std::to_string(depth)});
      list.push_back({"shape" + which, shape.text()});
    }
    list.push_back({"mirror_low", text_of_list(options.mirror_low)});
    list.push_back({"mirror_high", text_of_list(options.mirror_high)});
    list.push_back({"exchange", exchange_name(options.exchange)});
    return list;
  }

  HaloGeometry<D> geometry(const HaloNeed<D>& need) const {
    return {domain.decomposition(), need.shape, need.depth, around};
  }

  ~Impl() {
    if (!in_flight || !mpi_is_active()) return;
    try {
      latest->transport->finish();
    } catch (const Error& e) {
      std::fprintf(stderr, "isohalo: a halo exchange that was not finished: %s\n", e.what());
    }
  }

  std::size_t need_of(std::size_t array) const {
    if (needs.size() == 1) return 0;
    if (array < needs.size()) return array;
    throw UsageError("halo exchange: array " + std::to_string(array) + " of a plan for " +
                     std::to_string(needs.size()));
  }

  std::vector<HaloSchedule<D>> schedules(HaloPattern pattern) const {
    std::vector<HaloSchedule<D>> list;
    std::size_t stages = 0;
    for (const auto& need : needs) {
      list.push_back(halo_schedule(pattern, geometry(need), domain.coordinates(), options.mutation));
      stages = std::max(stages, list.back().size());
    }
    for (auto& schedule : list) schedule.resize(stages);
    return list;
  }

  ExchangeStores stores_for(std::span<const HaloSchedule<D>> list, std::span<const std::int64_t> bytes) const {
    if (options.stores) return {*options.stores, *options.stores};
    std::int64_t sent = 0, copied = 0;
    for (std::size_t f = 0; f < bytes.size(); ++f) {
      const HaloCost cost = halo_cost<D>(list.subspan(list.size() == 1 ? 0 : f, 1), false);
      sent += cost.cells_sent * bytes[f];
      copied += cost.cells_copied * bytes[f];
    }
    return detail::stores_for(sent, copied, domain.comm());
  }

  std::unique_ptr<Transport> make_transport(Exchange exchange, const Prepared& p) const {
    detail::HaloTask<D> task{domain, first_tag, schedules(exchange.pattern), p.element_bytes, {}};
    if (p.kernels) return p.kernels->make(std::move(task));
    task.stores = stores_for(task.schedules, task.element_bytes);
    if (exchange.fill == HaloFill::datatypes) return detail::datatype_transport(std::move(task));
    return detail::packed_transport(std::move(task), exchange.fill == HaloFill::shared);
  }

  const Prepared* find(Arrays arrays) const {
    for (const auto& p : prepared)
      if (std::equal(arrays.begin(), arrays.end(), p->element_bytes.begin(), p->element_bytes.end(),
                     [&](const ErasedArray<D>& a, std::int64_t bytes) {
                       return a.bytes == bytes && a.kernels == p->kernels;
                     }))
        return p.get();
    return nullptr;
  }

  void check_fit(Arrays arrays) const {
    if (arrays.size() > kMostArrays)
      throw UsageError("halo exchange: " + std::to_string(arrays.size()) +
                       " arrays in one exchange; the limit is " + std::to_string(kMostArrays));
    if (needs.size() > 1 && arrays.size() != needs.size())
      throw UsageError("halo exchange: " + std::to_string(arrays.size()) + " arrays, the plan is for " +
                       std::to_string(needs.size()));
    for (std::size_t k = 0; k < arrays.size(); ++k) check_fits(arrays[k], k);
    for (const auto& a : arrays)
      if (a.kernels != arrays.front().kernels)
        throw UsageError(
            "halo exchange: arrays in host memory and views that kernels copy, or views of several "
            "memory spaces: give each kind a plan of its own");
  }

  /// Makes what moves such a list of arrays: of the ways that may be taken the fastest by timing.
  const Prepared& prepare(Arrays arrays) {
    auto p = std::make_unique<Prepared>();
    for (const auto& a : arrays) p->element_bytes.push_back(a.bytes);
    p->kernels = arrays.empty() ? nullptr : arrays.front().kernels;
    agree_same(
        domain.comm(), "halo exchange",
        {{"list of element sizes", text_of_list(p->element_bytes)}, {"by kernels", p->kernels ? "yes" : "no"}},
        error_of([&] { check_fit(arrays); }).get());
    const bool automatic = options.exchange == Exchange::automatic;
    ExchangeChoice& choice = p->choice;
    std::vector<std::unique_ptr<Transport>> transports;
    const auto add = [&](Exchange e) {
      auto transport = try_transport(e, *p);
      if (!transport) return;
      transports.push_back(std::move(transport));
      choice.seconds.emplace_back(e, 0);
    };
    for (const Exchange e : automatic ? candidates(p->kernels != nullptr) : std::vector{options.exchange}) add(e);
    if (transports.empty()) add(Exchange::coalesced_packed);
    std::size_t best = 0;
    if (automatic && !repeating()) {
      const auto times = detail::least_seconds(domain.comm(), transports.size(), [&](std::size_t k) {
        return detail::seconds_of([&] {
          transports[k]->start(arrays, true);
          transports[k]->finish();
        });
      });
      best = detail::fastest(times);
      for (std::size_t k = 0; k < times.size(); ++k) choice.seconds[k].second = times[k];
      choice.used = choice.seconds[best].first;
    } else {
      choice.used = std::exchange(choice.seconds, {}).front().first;
    }
    p->transport = std::move(transports[best]);
    return *prepared.emplace_back(std::move(p));
  }

  /// The same for all ranks or an error on all; nothing on any for `shared`, when a compute node has no room for
  /// channels: then all use messages, and where that way was asked for the first rank that has found out says so.
  std::unique_ptr<Transport> try_transport(Exchange exchange, const Prepared& p) const {
    const Communicator& comm = domain.comm();
    std::unique_ptr<Transport> transport;
    const auto error = error_of([&] { transport = make_transport(exchange, p); });
    if (exchange.fill != HaloFill::shared) {
      agree_as<RunError>(comm, error.get());
      return transport;
    }
    const std::int64_t nobody = comm.size(), first = comm.min(error ? comm.rank() : nobody);
    if (first == comm.rank() && error && options.exchange != Exchange::automatic)
      std::fprintf(stderr, "isohalo: warning: halo exchange goes by messages: %s\n", error->what());
    if (first != nobody) transport.reset();
    return transport;
  }

  /// Where ghosts repeat the grid messages are small, and ways differ only in how often each cell is sent.
  bool repeating() const {
    return std::any_of(needs.begin(), needs.end(), [this](const auto& n) { return geometry(n).repeats_grid(); });
  }

  /// The ways that are worth timing, the same list on all ranks.
  std::vector<Exchange> candidates(bool kernels) const {
    if (repeating()) return {Exchange::coalesced_packed};
    const bool alone = domain.size() == 1;
    const bool neighbors = !alone && !kernels && domain.comm().max(domain.comm().ranks_on_node()) > 1;
    std::vector<Exchange> list;
    for (const auto& name : exchange_names()) {
      const Exchange e = exchange_of_name(name);
      if (e.fill == HaloFill::automatic || (e.fill == HaloFill::datatypes && (kernels || alone)) ||
          (e.fill == HaloFill::shared && !neighbors) || (e.pattern == HaloPattern::direct && alone) ||
          !std::all_of(needs.begin(), needs.end(), [&](const auto& n) { return fits(e, n.shape); }))
        continue;
      list.push_back(e);
    }
    return list;
  }

  void check_fits(const ErasedArray<D>& a, std::size_t k) const {
    if (!a.data) throw UsageError("halo exchange: array " + std::to_string(k) + " is NULL");
    const auto& [ghost_low, ghost_high] = ghosts[need_of(k)];
    if (a.owned != domain.owned())
      throw UsageError("halo exchange: the array holds another box than this rank owns");
    for (int j = 0; j < D; ++j)
      if (a.ghost_low[j] < ghost_low[j] || a.ghost_high[j] < ghost_high[j])
        throw UsageError("halo exchange: the array has " +
                         std::to_string(std::min(a.ghost_low[j], a.ghost_high[j])) + " ghost layers in dimension " +
                         std::to_string(j) + ", the plan needs " +
                         std::to_string(std::max(ghost_low[j], ghost_high[j])));
    detail::check_strides(a, k);
  }
};

template <int D>
HaloPlan<D>::HaloPlan(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth,
                      const HaloOptions<D>& options)
    : HaloPlan(domain, std::vector<HaloNeed<D>>{{shape, depth}}, options) {}
template <int D>
HaloPlan<D>::HaloPlan(const CartesianDomain<D>& domain, std::vector<HaloNeed<D>> needs,
                      const HaloOptions<D>& options)
    : impl_(std::make_unique<Impl>(domain, std::move(needs), options)) {}
template <int D>
HaloPlan<D>::HaloPlan(HaloPlan&&) noexcept = default;
template <int D>
HaloPlan<D>& HaloPlan<D>::operator=(HaloPlan&&) noexcept = default;
template <int D>
HaloPlan<D>::~HaloPlan() = default;

template <int D>
void HaloPlan<D>::begin(std::span<const ErasedArray<D>> arrays, bool may_wait) {
  Impl& i = *impl_;
  if (i.in_flight)
    throw UsageError("halo exchange: start() while an exchange of this plan is in flight; call finish() first");
  const auto* p = i.find(arrays);
  if (p)
    i.check_fit(arrays);
  else
    p = &i.prepare(arrays);
  p->transport->start(arrays, may_wait);
  i.latest = p;
  i.in_flight = true;
}

template <int D>
void HaloPlan<D>::progress() {
  if (!impl_->in_flight) throw UsageError("halo exchange: progress() without start()");
  impl_->latest->transport->test();
}

template <int D>
void HaloPlan<D>::finish() {
  if (!impl_->in_flight) throw UsageError("halo exchange: finish() without start()");
  impl_->in_flight = false;
  impl_->latest->transport->finish();
}

template <int D>
int HaloPlan<D>::depth(std::size_t k) const {
  return impl_->needs[impl_->need_of(k)].depth;
}
template <int D>
const Index<D>& HaloPlan<D>::ghost_low(std::size_t k) const {
  return impl_->ghosts[impl_->need_of(k)][0];
}
template <int D>
const Index<D>& HaloPlan<D>::ghost_high(std::size_t k) const {
  return impl_->ghosts[impl_->need_of(k)][1];
}

template <int D>
HaloCost HaloPlan<D>::cost() const {
  const Exchange used = choice().used == Exchange::automatic ? impl_->options.exchange : choice().used;
  return halo_cost<D>(impl_->schedules(used.pattern), used.fill != HaloFill::datatypes);
}

template <int D>
const ExchangeChoice& HaloPlan<D>::choice() const {
  static const ExchangeChoice none;
  return impl_->latest ? impl_->latest->choice : none;
}

template <int D>
std::int64_t HaloPlan<D>::bytes_written_directly() const {
  return impl_->latest ? impl_->latest->transport->bytes_written_directly() : 0;
}

#define ISOHALO_INSTANTIATE(D) template class HaloPlan<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
