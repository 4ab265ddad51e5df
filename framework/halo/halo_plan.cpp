#include "framework/halo/halo_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "datatypes/error.hpp"
#include "framework/halo/faces.hpp"
#include "framework/halo/halo_plan_access.hpp"
#include "framework/halo/host_transport.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/schedule/chooser.hpp"

namespace isohalo {

template <int D>
struct HaloPlan<D>::Impl {
  using Transport = detail::HaloTransport<D>;
  using Arrays = std::span<const ErasedArray<D>>;

  /// What arrays need the same cells.
  struct Kind {
    std::size_t need;
    int face;
    bool operator==(const Kind&) const = default;
  };
  /// The blocks of cells, or of faces.
  struct Grid {
    Decomposition<D> blocks;
    BoundaryTopology<D> around;
    Box<D> mine{};  ///< this rank's
  };
  /// What moves arrays of these element sizes and kinds.
  struct Prepared {
    std::vector<std::int64_t> element_bytes;
    std::vector<int> faces;
    std::vector<Kind> kinds;           ///< all different
    std::vector<std::size_t> kind_of;  ///< by array
    const detail::KernelCopies<D>* kernels = nullptr;
    std::unique_ptr<Transport> transport;
    ExchangeChoice choice;
  };

  CartesianDomain<D> domain;
  std::vector<HaloNeed<D>> needs;  ///< one for all arrays, or one for each
  HaloOptions<D> options;
  HaloMutation<D> mutation;                          ///< see HaloPlanAccess
  std::optional<Stores> copied_by{};                 ///< the same
  mutable PerDim<std::optional<Grid>, D + 1> grids;  ///< of the faces of each dimension, and of cells
  std::vector<std::array<Index<D>, 2>> ghosts;       ///< layers below and above, by need
  std::vector<std::size_t> first_like;               ///< by need: the first one that is the same
  std::vector<std::unique_ptr<Prepared>> prepared;
  const Prepared* latest = nullptr;  ///< by which the latest exchange goes or went
  bool in_flight = false;
  int tag = 0;

  Impl(const CartesianDomain<D>& d, std::vector<HaloNeed<D>> n, const HaloOptions<D>& o)
      : domain(d), needs(std::move(n)), options(o) {
    std::vector<Argument> arguments;
    const auto error = error_of([&] {
      check_needs();
      arguments = compared();
    });
    agree_same(domain.comm(), "HaloPlan", arguments, error.get());
    // Only when all ranks make this plan: where one makes something else their counters would part for good.
    tag = domain.comm().take_tags(1);
    for (const Kind& k : kinds_of_cells()) ghosts.push_back(geometry(k).widths());
    for (const HaloNeed<D>& need : needs)
      first_like.push_back(static_cast<std::size_t>(std::find(needs.begin(), needs.end(), need) - needs.begin()));
  }

  void check_needs() const {
    if (needs.empty()) throw UsageError("halo plan for 0 arrays: name the need of one at least");
    for (const auto& [shape, depth] : needs) {
      if (depth < 0) throw UsageError("halo depth " + std::to_string(depth) + " is negative");
      refuse_unfit_exchange(options.exchange, shape);
    }
  }

  std::vector<Argument> compared() const {
    std::vector<Argument> list{{"domain", domain.text()}, {"number of needs", std::to_string(needs.size())}};
    for (const auto& [shape, depth] : needs) {
      const std::string which = needs.size() == 1 ? "" : " of array " + std::to_string((list.size() - 2) / 2);
      list.push_back({"depth" + which, std::to_string(depth)});
      list.push_back({"shape" + which, shape.text()});
    }
    list.push_back({"mirror_low", text_of_list(options.mirror_low)});
    list.push_back({"mirror_high", text_of_list(options.mirror_high)});
    list.push_back({"exchange", exchange_name(options.exchange)});
    return list;
  }

  const Grid& grid(int face) const {
    if (face < -1 || face >= D)
      throw UsageError("halo: faces of dimension " + std::to_string(face) + "; there are dimensions 0 to " +
                       std::to_string(D - 1) + ", and -1 for cells");
    auto& g = grids[static_cast<std::size_t>(face < 0 ? D : face)];
    if (!g) {
      Grid made{domain.decomposition(),
                {domain.global(), domain.periodic(), options.mirror_low, options.mirror_high},
                {}};
      if (face >= 0) {
        made.blocks = face_decomposition(made.blocks, domain.periodic(), face);
        made.around.global = made.blocks.global();
        made.around.face = face;
      }
      made.mine = made.blocks.box(domain.coordinates());
      g = std::move(made);
    }
    return *g;
  }
  HaloGeometry<D> geometry(const Kind& k) const {
    const Grid& g = grid(k.face);
    return {g.blocks, needs[k.need].shape, needs[k.need].depth, g.around};
  }
  std::vector<Kind> kinds_of_cells() const {
    std::vector<Kind> list;
    for (std::size_t n = 0; n < needs.size(); ++n) list.push_back({n, -1});
    return list;
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

  std::vector<HaloSchedule<D>> schedules(HaloPattern pattern, const std::vector<Kind>& kinds) const {
    std::vector<HaloSchedule<D>> list;
    for (const Kind& k : kinds) list.push_back(halo_schedule(pattern, geometry(k), domain.coordinates(), mutation));
    return list;
  }

  void refuse_prepared() const {
    if (!prepared.empty()) throw UsageError("halo plan: it is changed before its first exchange, or not at all");
  }

  ExchangeStores stores_for(const detail::HaloTask<D>& task) const {
    if (copied_by) return {*copied_by, *copied_by, {}};
    std::int64_t sent = 0, copied = 0;
    for (std::size_t k = 0; k < task.schedules.size(); ++k) {
      const HaloCost cost = halo_cost(task.schedules[k]);
      for (std::size_t f = 0; f < task.element_bytes.size(); ++f) {
        if (task.schedule_of[f] != k) continue;
        sent += cost.cells_sent * task.element_bytes[f];
        copied += cost.cells_copied * task.element_bytes[f];
      }
    }
    return detail::stores_for(sent, copied, domain.comm());
  }

  std::unique_ptr<Transport> make_transport(Exchange exchange, const Prepared& p) const {
    detail::HaloTask<D> task{domain, tag, schedules(exchange.pattern, p.kinds), p.kind_of, p.element_bytes, {}};
    if (p.kernels) return p.kernels->make(std::move(task));
    task.stores = stores_for(task);
    task.stores.workers = options.workers;
    if (exchange.fill == HaloFill::datatypes) return detail::datatype_transport(std::move(task));
    return detail::packed_transport(std::move(task), exchange.fill == HaloFill::shared);
  }

  const Prepared* find(Arrays arrays) const {
    const auto fits = [&](const Prepared& p) {
      if (p.element_bytes.size() != arrays.size()) return false;
      for (std::size_t k = 0; k < arrays.size(); ++k)
        if (arrays[k].bytes != p.element_bytes[k] || arrays[k].face != p.faces[k] || arrays[k].kernels != p.kernels)
          return false;
      return true;
    };
    for (const auto& p : prepared)
      if (fits(*p)) return p.get();
    return nullptr;
  }

  void check_fit(Arrays arrays) const {
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
    for (const auto& a : arrays) p->element_bytes.push_back(a.bytes), p->faces.push_back(a.face);
    p->kernels = arrays.empty() ? nullptr : arrays.front().kernels;
    agree_same(domain.comm(), "halo exchange",
               {{"list of element sizes", text_of_list(p->element_bytes)},
                {"list of faces (-1: cells)", text_of_list(p->faces)},
                {"by kernels", p->kernels ? "yes" : "no"}},
               error_of([&] { check_fit(arrays); }).get());
    find_kinds(*p);
    ExchangeChoice& choice = p->choice;
    std::vector<std::unique_ptr<Transport>> transports;
    const auto add = [&](Exchange e) {
      auto transport = try_transport(e, *p);
      if (!transport) return;
      transports.push_back(std::move(transport));
      choice.seconds.emplace_back(e, 0);
    };
    for (const Exchange e :
         options.exchange == Exchange::automatic ? candidates(*p) : std::vector{options.exchange})
      add(e);
    if (transports.empty()) add(Exchange::coalesced_packed);
    std::size_t best = 0;
    if (transports.size() > 1) {
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
    if (options.runs_on) p->transport->run_on();
    return *prepared.emplace_back(std::move(p));
  }

  void find_kinds(Prepared& p) const {
    if (p.faces.empty()) p.kinds = kinds_of_cells();
    for (std::size_t f = 0; f < p.faces.size(); ++f) {
      const Kind kind{first_like[need_of(f)], p.faces[f]};
      const auto place = std::find(p.kinds.begin(), p.kinds.end(), kind);
      p.kind_of.push_back(static_cast<std::size_t>(place - p.kinds.begin()));
      if (place == p.kinds.end()) p.kinds.push_back(kind);
    }
  }

  /// The same for all ranks or an error on all; nothing on any for `shared`, when a compute node has no room for
  /// channels: then all use messages, and where that way was asked for the first rank that has found out says so.
  std::unique_ptr<Transport> try_transport(Exchange exchange, const Prepared& p) const {
    const Communicator& comm = domain.comm();
    std::unique_ptr<Transport> transport;
    const auto error = error_of([&] { transport = make_transport(exchange, p); });
    if (exchange.fill != HaloFill::shared) {
      // What a caller may do wrong has been refused before.
      agree(comm, error ? std::make_unique<RunError>(error->what()).get() : nullptr);
      return transport;
    }
    const std::int64_t nobody = comm.size(), first = comm.min(error ? comm.rank() : nobody);
    if (first == comm.rank() && error && options.exchange != Exchange::automatic)
      std::fprintf(stderr, "isohalo: warning: halo exchange goes by messages: %s\n", error->what());
    if (first != nobody) transport.reset();
    return transport;
  }

  /// The ways that are worth timing, the same list on all ranks.
  std::vector<Exchange> candidates(const Prepared& p) const {
    constexpr double few_images = 125;  // a message, or a part of a type, for each of more would take seconds
    for (const auto& [shape, depth] : needs)
      if (grid_images(shape, depth, grid(-1).around) > few_images) return {Exchange::coalesced_packed};
    const bool alone = domain.size() == 1, kernels = p.kernels != nullptr;
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
    if (a.bytes < 1 || a.pitch < 1)
      throw UsageError("halo exchange: elements of array " + std::to_string(k) + " have " +
                       std::to_string(std::min(a.bytes, a.pitch)) + " bytes; the least is 1");
    const Box<D>& mine = grid(a.face).mine;
    if (a.owned != mine)
      throw UsageError("halo exchange: array " + std::to_string(k) + " holds another box than this rank owns: " +
                       to_string<D>(a.owned.low) + " to " + to_string<D>(a.owned.high) + ", not " +
                       to_string<D>(mine.low) + " to " + to_string<D>(mine.high));
    for (int j = 0; j < D; ++j)
      if (a.ghost_low[j] < ghost_low[j] || a.ghost_high[j] < ghost_high[j])
        throw UsageError("halo exchange: array " + std::to_string(k) + " has " +
                         std::to_string(std::min(a.ghost_low[j], a.ghost_high[j])) + " ghost layers in dimension " +
                         std::to_string(j) + ", the plan needs " +
                         std::to_string(std::max(ghost_low[j], ghost_high[j])));
    detail::check_strides(a, "halo exchange", k);
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
std::vector<Box<D>> HaloPlan<D>::region(int step, std::size_t k, int face) const {
  const HaloNeed<D>& need = impl_->needs[impl_->need_of(k)];
  if (step < 1 || step > need.depth)
    throw UsageError("halo plan: the region of step " + std::to_string(step) + "; there are steps 1 to " +
                     std::to_string(need.depth) + " between two exchanges");
  const auto& grid = impl_->grid(face);
  return need.shape.needed_boxes(grid.mine, need.depth - step, grid.around);
}

template <int D>
const ExchangeChoice& HaloPlan<D>::choice() const {
  static const ExchangeChoice none;
  return impl_->latest ? impl_->latest->choice : none;
}

template <int D>
void detail::HaloPlanAccess::change(HaloPlan<D>& plan, HaloMutation<D> mutation) {
  plan.impl_->refuse_prepared();
  plan.impl_->mutation = std::move(mutation);
}
template <int D>
void detail::HaloPlanAccess::copy_by(HaloPlan<D>& plan, Stores stores) {
  plan.impl_->refuse_prepared();
  plan.impl_->copied_by = stores;
}

#define ISOHALO_INSTANTIATE(D)                                                    \
  template class HaloPlan<D>;                                                     \
  template void detail::HaloPlanAccess::change<D>(HaloPlan<D>&, HaloMutation<D>); \
  template void detail::HaloPlanAccess::copy_by<D>(HaloPlan<D>&, Stores);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
