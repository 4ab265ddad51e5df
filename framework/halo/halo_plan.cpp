#include "framework/halo/halo_plan.hpp"

#include <map>
#include <string>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/halo/strided_copy.hpp"

namespace isohalo {

namespace {

constexpr std::size_t kMaxArrays = 16;  // message tags per plan

/// The committed types of all messages for one array layout; made once, found again by every later exchange.
template <int D>
struct LayoutTypes {
  std::int64_t bytes;
  Datatype (*element)();
  Index<D> stride;
  std::vector<Datatype> send, receive;  // in the order of the peers
};

/// A region on both sides of a copy within this rank.
template <int D>
struct SelfCopy {
  Region<D> region;  // the ghosts
  Index<D> shift;    // ghost = source + shift
};

}  // namespace

template <int D>
struct HaloPlan<D>::Impl {
  CartesianDomain<D> domain;
  int depth;
  Index<D> ghost_low, ghost_high;
  std::vector<SelfCopy<D>> self;
  std::map<int, std::vector<Region<D>>> send, receive;  // by rank; regions in this rank's unwrapped indices
  int first_tag;
  std::vector<LayoutTypes<D>> layouts;
  std::vector<MPI_Request> requests;
  std::size_t posted = 0;
  bool in_flight = false;

  Impl(const CartesianDomain<D>& d, const StencilShape<D>& shape, int k, const HaloOptions<D>& options)
      : domain(d), depth(k), first_tag(d.comm().take_tags(static_cast<int>(kMaxArrays))) {
    if (k < 0) throw UsageError("halo depth " + std::to_string(k) + " is negative");
    const Surroundings<D> around{d.global(), d.periodic(), options.mirror_low, options.mirror_high};
    const auto widths = shape.ghost_widths(k, around);
    ghost_low = widths[0];
    ghost_high = widths[1];
    if (!options.beyond_neighbors) refuse_far_ghosts(d.decomposition(), shape, k, around);
    plan_messages(shape, around, options);
    requests.reserve((send.size() + receive.size()) * 4);
  }

  void plan_messages(const StencilShape<D>& shape, const Surroundings<D>& around, const HaloOptions<D>& options) {
    const auto& blocks = domain.decomposition();
    auto pieces_of = [&](const PerDim<int, D>& coords) {
      auto pieces = halo_pieces(blocks, coords, shape, depth, around);
      if (options.mutation) options.mutation(pieces);
      return pieces;
    };
    for (const auto& piece : pieces_of(domain.coordinates())) {
      if (piece.owner == domain.coordinates())
        self.push_back({piece.region, piece.shift});
      else
        receive[blocks.rank_at(piece.owner)].push_back(piece.region);
    }
    for (const auto& coords : possible_receivers(blocks, domain.coordinates(), shape, depth, around)) {
      if (coords == domain.coordinates()) continue;
      for (const auto& piece : pieces_of(coords)) {
        if (piece.owner != domain.coordinates()) continue;
        Index<D> back;
        for (int j = 0; j < D; ++j) back[j] = -piece.shift[j];
        send[blocks.rank_at(coords)].push_back(piece.region.shifted(back));
      }
    }
  }

  Datatype message_type(const std::vector<Region<D>>& regions, const Index<D>& stride, MPI_Datatype element) const {
    std::vector<Datatype> parts;
    for (const auto& r : regions) parts.push_back(region_type(r, domain.owned().low, stride, element));
    return joined_type(parts);
  }

  const LayoutTypes<D>& types_for(const Erased& a) {
    for (const auto& l : layouts)
      if (l.bytes == a.bytes && l.element == a.element && l.stride == a.stride) return l;
    LayoutTypes<D> l{a.bytes, a.element, a.stride, {}, {}};
    const Datatype element = a.element();
    for (const auto& [peer, regions] : send) l.send.push_back(message_type(regions, a.stride, element.get()));
    for (const auto& [peer, regions] : receive) l.receive.push_back(message_type(regions, a.stride, element.get()));
    layouts.push_back(std::move(l));
    return layouts.back();
  }

  void check_fits(const Erased& a) const {
    if (a.owned != domain.owned())
      throw UsageError("halo exchange: the array holds another box than this rank owns");
    for (int j = 0; j < D; ++j)
      if (a.ghost_low[j] < ghost_low[j] || a.ghost_high[j] < ghost_high[j])
        throw UsageError("halo exchange: the array has " +
                         std::to_string(std::min(a.ghost_low[j], a.ghost_high[j])) + " ghost layers in dimension " +
                         std::to_string(j) + ", the plan needs " +
                         std::to_string(std::max(ghost_low[j], ghost_high[j])));
  }

  void copy_self(const Erased& a) const {
    for (const auto& copy : self)
      copy.region.for_each_box([&](const Box<D>& box) {
        std::int64_t to = 0, from = 0;
        Index<D> extents;
        for (int j = 0; j < D; ++j) {
          extents[j] = box.extent(j);
          to += (box.low[j] - a.owned.low[j]) * a.stride[j];
          from += (box.low[j] - copy.shift[j] - a.owned.low[j]) * a.stride[j];
        }
        strided_copy<D>(a.data + to * a.bytes, a.data + from * a.bytes, extents, a.stride, a.bytes);
      });
  }

  void post(const Erased& a) {
    check_fits(a);
    const LayoutTypes<D>& types = types_for(a);
    const MPI_Comm comm = domain.comm().get();
    const int tag = first_tag + static_cast<int>(posted++);
    std::size_t i = 0;
    for (const auto& [peer, regions] : receive) {
      requests.push_back(MPI_REQUEST_NULL);
      mpi_check(MPI_Irecv(a.data, 1, types.receive[i++].get(), peer, tag, comm, &requests.back()),
                "MPI_Irecv in a halo exchange", comm);
    }
    i = 0;
    for (const auto& [peer, regions] : send) {
      requests.push_back(MPI_REQUEST_NULL);
      mpi_check(MPI_Isend(a.data, 1, types.send[i++].get(), peer, tag, comm, &requests.back()),
                "MPI_Isend in a halo exchange", comm);
    }
    copy_self(a);
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
void HaloPlan<D>::begin(std::size_t arrays) {
  if (impl_->in_flight)
    throw UsageError("halo exchange: start() while an exchange of this plan is in flight; call finish() first");
  if (arrays > kMaxArrays)
    throw UsageError("halo exchange: " + std::to_string(arrays) + " arrays in one exchange; the limit is " +
                     std::to_string(kMaxArrays));
  impl_->in_flight = true;
  impl_->posted = 0;
}

template <int D>
void HaloPlan<D>::post(const Erased& array) {
  try {
    impl_->post(array);
  } catch (...) {
    if (impl_->requests.empty()) impl_->in_flight = false;  // nothing was posted: the plan can be used again
    throw;
  }
}

template <int D>
void HaloPlan<D>::finish() {
  if (!impl_->in_flight) throw UsageError("halo exchange: finish() without start()");
  impl_->domain.comm().wait(impl_->requests, "halo exchange");
  impl_->requests.clear();
  impl_->in_flight = false;
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
  HaloCost c;
  c.messages = static_cast<std::int64_t>(impl_->send.size());
  for (const auto& [peer, regions] : impl_->send)
    for (const auto& r : regions) c.cells_sent += r.cells();
  for (const auto& [peer, regions] : impl_->receive)
    for (const auto& r : regions) c.cells_received += r.cells();
  for (const auto& s : impl_->self) c.cells_copied += s.region.cells();
  return c;
}

template class HaloPlan<1>;
template class HaloPlan<2>;
template class HaloPlan<3>;
template class HaloPlan<4>;

}  // namespace isohalo
