#include "framework/halo/halo_plan.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>

#include "datatypes/error.hpp"
#include "framework/halo/exchange_timing.hpp"
#include "framework/halo/ghost_fill.hpp"
#include "framework/halo/halo_mover.hpp"
#include "framework/halo/packed_mover.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

template <int D>
struct HaloPlan<D>::Impl {
  /// What moves arrays of these element sizes.
  struct Prepared {
    std::vector<std::int64_t> element_bytes;
    std::unique_ptr<detail::HaloMover<D>> mover;
    ExchangeChoice choice;
  };

  CartesianDomain<D> domain;
  std::vector<HaloNeed<D>> needs;  ///< one for all arrays, or one for each
  HaloOptions<D> options;
  Surroundings<D> around;
  std::vector<std::array<Index<D>, 2>> ghosts;  ///< layers below and above, by need
  int first_tag;
  detail::Farewell farewell;
  std::vector<std::unique_ptr<Prepared>> prepared;
  ExchangeChoice none;  ///< before the first exchange
  const ExchangeChoice* latest = &none;
  detail::HaloMover<D>* current = nullptr;     ///< of the exchange in flight
  const detail::HaloMover<D>* last = nullptr;  ///< of the latest exchange

  Impl(const CartesianDomain<D>& d, std::vector<HaloNeed<D>> n, const HaloOptions<D>& o)
      : domain(d),
        needs(std::move(n)),
        options(o),
        around{d.global(), d.periodic(), o.mirror_low, o.mirror_high},
        first_tag(agreed_tags()),
        farewell(d.comm()) {
    for (const auto& [shape, depth] : needs) ghosts.push_back(shape.ghost_widths(depth, around));
  }

  /// Tags only when all ranks make this plan: where one makes something else their counters would part for good.
  int agreed_tags() const {
    std::vector<Argument> list;
    const auto error = error_of([&] {
      check_needs();
      list = arguments();
    });
    agree_same(domain.comm(), "HaloPlan", list, error.get());
    return domain.comm().take_tags(static_cast<int>(detail::kMaxArrays));
  }

  void check_needs() const {
    if (needs.empty() || needs.size() > detail::kMaxArrays)
      throw UsageError("halo plan for " + std::to_string(needs.size()) + " arrays; there may be 1 to " +
                       std::to_string(detail::kMaxArrays));
    for (const auto& [shape, depth] : needs) {
      if (depth < 0) throw UsageError("halo depth " + std::to_string(depth) + " is negative");
      refuse_unfit_exchange(options.exchange, shape);
    }
  }

  std::vector<Argument> arguments() const {
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

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    if (!farewell.say(current != nullptr)) return;
    for (auto& p : prepared)
      if (!p->mover->withdraw()) Progressable::deactivate(p->mover.release());  // it stays
  }

  /// The exchange in flight cannot go on. Ends when the arrays are this rank's again, unless others come to the
  /// exchange very late.
  void break_off(const Error& error) noexcept {
    farewell.break_off(error);
    current->withdraw();
    const auto end = std::chrono::steady_clock::now() + detail::kLateness;
    const auto settled = [&] { return current->let_go(farewell.gone()) || std::chrono::steady_clock::now() > end; };
    try {
      wait_until(settled, domain.comm().spins());
    } catch (const Error&) {  // the first one is the one to report
    }
  }

  /// Those that wait for this rank in exchanges, or for which it waits.
  std::vector<int> neighbors() const {
    std::set<int> all;
    for (const auto& p : prepared) p->mover->add_peers(all);
    return {all.begin(), all.end()};
  }

  std::size_t need_of(std::size_t array) const {
    if (needs.size() == 1) return 0;
    if (array < needs.size()) return array;
    throw UsageError("halo exchange: array " + std::to_string(array) + " of a plan for " +
                     std::to_string(needs.size()));
  }

  std::vector<HaloSchedule<D>> schedules(Exchange exchange) const {
    std::vector<HaloSchedule<D>> list;
    std::size_t stages = 0;
    for (const auto& [shape, depth] : needs) {
      list.push_back(halo_schedule(pattern_of(exchange), domain.decomposition(), domain.coordinates(), shape, depth,
                                   around, options.mutation));
      stages = std::max(stages, list.back().stages.size());
    }
    for (auto& schedule : list) schedule.stages.resize(stages);
    return list;
  }

  ExchangeStores stores_for(const std::vector<HaloSchedule<D>>& list, std::span<const std::int64_t> bytes) const {
    if (options.stores) return {*options.stores, *options.stores};
    std::int64_t sent = 0, copied = 0;
    for (std::size_t f = 0; f < bytes.size(); ++f) {
      const HaloCost cost = list[list.size() == 1 ? 0 : f].cost();
      sent += cost.cells_sent * bytes[f];
      copied += cost.cells_copied * bytes[f];
    }
    return detail::stores_for(sent, copied, domain.comm());
  }

  std::unique_ptr<detail::HaloMover<D>> make_mover(Exchange exchange, std::span<const std::int64_t> bytes) const {
    auto list = schedules(exchange);
    const ExchangeStores stores = stores_for(list, bytes);
    if (is_packed(exchange))
      return std::make_unique<detail::PackedMover<D>>(domain, first_tag, std::move(list), bytes, stores,
                                                      exchange == Exchange::shared);
    return std::make_unique<detail::DatatypeMover<D>>(domain, first_tag, std::move(list), stores);
  }

  Prepared* find(std::span<const ErasedArray<D>> arrays) const {
    for (const auto& p : prepared)
      if (std::equal(arrays.begin(), arrays.end(), p->element_bytes.begin(), p->element_bytes.end(),
                     [](const ErasedArray<D>& a, std::int64_t bytes) { return a.bytes == bytes; }))
        return p.get();
    return nullptr;
  }

  void check_fit(std::span<const ErasedArray<D>> arrays) const {
    if (arrays.size() > detail::kMaxArrays)
      throw UsageError("halo exchange: " + std::to_string(arrays.size()) +
                       " arrays in one exchange; the limit is " + std::to_string(detail::kMaxArrays));
    if (needs.size() > 1 && arrays.size() != needs.size())
      throw UsageError("halo exchange: " + std::to_string(arrays.size()) + " arrays, the plan is for " +
                       std::to_string(needs.size()));
    for (std::size_t k = 0; k < arrays.size(); ++k) check_fits(arrays[k], k);
  }

  /// Makes what moves such a list of arrays.
  Prepared& prepare(std::span<const ErasedArray<D>> arrays) {
    auto p = std::make_unique<Prepared>();
    for (const auto& a : arrays) p->element_bytes.push_back(a.bytes);
    farewell.meet();
    agree_on(arrays);
    if (options.exchange == Exchange::automatic) {
      choose(*p, arrays);
    } else {
      const auto error = error_of([&] { p->mover = make_mover(options.exchange, p->element_bytes); });
      p->choice.used = options.exchange;
      if (options.exchange != Exchange::shared) {
        agree_as<RunError>(domain.comm(), error.get());
      } else if (lacks_room(error.get())) {
        p->choice.used = Exchange::coalesced_packed;
        p->mover = make_mover(p->choice.used, p->element_bytes);
      }
    }
    prepared.push_back(std::move(p));
    farewell.set_neighbors(neighbors());
    return *prepared.back();
  }

  /// A node may have no room for channels: then all use messages, and the first rank that has found out says so.
  bool lacks_room(const Error* error) const {
    const std::int64_t nobody = domain.size(), first = domain.comm().min(error ? domain.comm().rank() : nobody);
    if (first == domain.comm().rank() && error)
      std::fprintf(stderr, "isohalo: warning: halo exchange goes by messages: %s\n", error->what());
    return first != nobody;
  }

  void agree_on(std::span<const ErasedArray<D>> arrays) const {
    std::vector<std::int64_t> bytes;
    for (const auto& a : arrays) bytes.push_back(a.bytes);
    agree_same(domain.comm(), "halo exchange", {{"list of element sizes", text_of_list(bytes)}},
               error_of([&] { check_fit(arrays); }).get());
  }

  /// Where ghosts repeat the grid messages are small, and ways differ only in how often each cell is sent.
  bool repeating() const {
    return std::any_of(needs.begin(), needs.end(), [this](const HaloNeed<D>& n) {
      return detail::repeats_grid(domain.decomposition(), n.shape, n.depth, around);
    });
  }

  /// The ways that are worth timing, the same list on all ranks.
  std::vector<Exchange> candidates() const {
    const bool slabs =
        std::all_of(needs.begin(), needs.end(), [](const HaloNeed<D>& n) { return slabs_possible(n.shape); });
    if (repeating()) return {Exchange::coalesced_packed};
    const bool alone = domain.size() == 1;
    const bool neighbors = !alone && domain.comm().max(domain.comm().ranks_on_node()) > 1;
    std::vector<Exchange> list;
    for (const auto& name : exchange_names()) {
      const Exchange e = exchange_of_name(name);
      if (e == Exchange::automatic || (pattern_of(e) == HaloPattern::slabs && !slabs)) continue;
      if (e == Exchange::shared && !neighbors) continue;
      if (alone && e != Exchange::coalesced_packed && e != Exchange::slabs_packed) continue;  // copies only
      list.push_back(e);
    }
    return list;
  }

  void choose(Prepared& p, std::span<const ErasedArray<D>> arrays) {
    std::vector<std::unique_ptr<detail::HaloMover<D>>> movers;
    for (const Exchange e : candidates()) {
      std::unique_ptr<detail::HaloMover<D>> mover;
      const auto error = error_of([&] { mover = make_mover(e, p.element_bytes); });
      if (e == Exchange::shared ? lacks_room(error.get()) : error != nullptr) {
        if (e == Exchange::shared) continue;
        throw RunError(error->what());
      }
      movers.push_back(std::move(mover));
      p.choice.seconds.emplace_back(e, 0);
    }
    if (repeating()) {  // nothing to choose from
      p.choice = {p.choice.seconds.front().first, {}};
      p.mover = std::move(movers.front());
      return;
    }
    const auto seconds = detail::time_movers<D>(domain.comm(), movers, arrays);
    const auto best = static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
    for (std::size_t k = 0; k < seconds.size(); ++k) p.choice.seconds[k].second = seconds[k];
    p.choice.used = p.choice.seconds[best].first;
    p.mover = std::move(movers[best]);
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
void HaloPlan<D>::begin(std::span<const ErasedArray<D>> arrays, bool patient) {
  Impl& i = *impl_;
  i.farewell.refuse_if_broken();
  if (i.current)
    throw UsageError("halo exchange: start() while an exchange of this plan is in flight; call finish() first");
  auto* prepared = i.find(arrays);
  i.farewell.attempt([&] {
    if (prepared) i.check_fit(arrays);
  });
  if (!prepared) prepared = &i.prepare(arrays);
  prepared->mover->start(arrays, patient);
  i.farewell.count_exchange();
  i.current = prepared->mover.get();
  i.last = i.current;
  i.latest = &prepared->choice;
}

template <int D>
void HaloPlan<D>::progress() {
  impl_->farewell.refuse_if_broken();
  if (!impl_->current) throw UsageError("halo exchange: progress() without start()");
  impl_->current->advance();
}

template <int D>
void HaloPlan<D>::finish() {
  Impl& i = *impl_;
  i.farewell.refuse_if_broken();
  if (!i.current) throw UsageError("halo exchange: finish() without start()");
  try {
    i.current->finish(&i.farewell);
  } catch (const Error& e) {
    i.break_off(e);
    throw;
  }
  i.current = nullptr;
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
  const bool join = used == Exchange::automatic || is_packed(used);
  return total_cost<D>(impl_->schedules(used), join);
}

template <int D>
const ExchangeChoice& HaloPlan<D>::choice() const {
  return *impl_->latest;
}

template <int D>
std::int64_t HaloPlan<D>::bytes_pushed() const {
  return impl_->last ? impl_->last->bytes_pushed() : 0;
}

template <int D>
FormerHaloPlan::FormerHaloPlan(const HaloPlan<D>& plan) : farewell_(plan.impl_->farewell) {}

template FormerHaloPlan::FormerHaloPlan(const HaloPlan<1>&);
template FormerHaloPlan::FormerHaloPlan(const HaloPlan<2>&);
template FormerHaloPlan::FormerHaloPlan(const HaloPlan<3>&);
template FormerHaloPlan::FormerHaloPlan(const HaloPlan<4>&);

template class HaloPlan<1>;
template class HaloPlan<2>;
template class HaloPlan<3>;
template class HaloPlan<4>;

}  // namespace isohalo
