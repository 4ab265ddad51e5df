#include "datatypes/mpi_check.hpp"
#include "framework/halo/ghost_fill.hpp"
#include "framework/halo/host_transport.hpp"

namespace isohalo::detail {

template <int D>
HostTransport<D>::HostTransport(const CartesianDomain<D>& domain, int first_tag,
                                std::vector<HaloSchedule<D>> schedules, ExchangeStores stores)
    : HaloTransport<D>(domain, first_tag, std::move(schedules)), stores_(stores), copiers_(this->stages()) {
  for (const auto& schedule : this->schedules_)
    for (std::size_t k = 0; k < this->stages(); ++k) {
      BoxCopier<D>& copier = copiers_[k].emplace_back();
      for (const auto& copy : schedule.stages[k].copies)
        copy.ghosts.for_each_box([&](const Box<D>& b) { copier.add({b, copy.shift}); });
    }
}

template <int D>
void HostTransport<D>::copy(std::size_t stage) {
  for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
    const std::size_t schedule = this->schedule_of(f);
    copiers_[stage][schedule].run(this->arrays_[f], stores_.in_place);
    if (const auto& fill = this->schedules_[schedule].stages[stage].fill) fill->run(this->arrays_[f]);
  }
}

template <int D>
Datatype DatatypeTransport<D>::type_of(const HaloMessage<D>& message, const ErasedArray<D>& a) const {
  Datatype element = a.element ? a.element() : bytes_type(a.bytes);
  if (a.pitch != a.bytes) element = resized_type(element, a.pitch);
  std::vector<Datatype> parts;
  for (const auto& r : message.regions)
    parts.push_back(region_type(r, this->domain_.owned().low, a.stride, element.get()));
  return parts.size() == 1 ? std::move(parts.front()) : joined_type(parts);
}

template <int D>
const typename DatatypeTransport<D>::Layout& DatatypeTransport<D>::layout_of(std::size_t array) {
  const ErasedArray<D>& a = this->arrays_[array];
  const std::size_t schedule = this->schedule_of(array);
  for (const auto& l : layouts_)
    if (l->schedule == schedule && l->bytes == a.bytes && l->pitch == a.pitch && l->element == a.element &&
        l->stride == a.stride)
      return *l;
  auto layout = std::make_unique<Layout>(Layout{schedule, a.bytes, a.pitch, a.element, a.stride, {}, {}});
  for (const auto& stage : this->schedules_[schedule].stages) {
    auto& send = layout->send.emplace_back();
    auto& receive = layout->receive.emplace_back();
    for (const auto& m : stage.send) send.push_back(type_of(m, a));
    for (const auto& m : stage.receive) receive.push_back(type_of(m, a));
  }
  layouts_.push_back(std::move(layout));
  return *layouts_.back();
}

template <int D>
void DatatypeTransport<D>::post_receives() {
  const MPI_Comm comm = this->comm();
  receives_.resize(this->stages());
  for (std::size_t k = 0; k < receives_.size(); ++k)
    for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
      const auto& types = layout_of(f).receive[k];
      const auto& messages = this->schedules_[this->schedule_of(f)].stages[k].receive;
      for (std::size_t m = 0; m < messages.size(); ++m)
        mpi_check(
            MPI_Irecv(this->arrays_[f].data, 1, types[m].get(), messages[m].peer,
                      this->first_tag_ + static_cast<int>(f), comm, &receives_[k].emplace_back(MPI_REQUEST_NULL)),
            "MPI_Irecv in a halo exchange", comm);
    }
}

template <int D>
void DatatypeTransport<D>::send(std::size_t stage) {
  const MPI_Comm comm = this->comm();
  for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
    const auto& types = layout_of(f).send[stage];
    const auto& messages = this->schedules_[this->schedule_of(f)].stages[stage].send;
    for (std::size_t m = 0; m < messages.size(); ++m)
      mpi_check(MPI_Isend(this->arrays_[f].data, 1, types[m].get(), messages[m].peer,
                          this->first_tag_ + static_cast<int>(f), comm, &sends_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend in a halo exchange", comm);
  }
}

template <int D>
bool DatatypeTransport<D>::received(std::size_t stage) {
  if (!test_all(receives_[stage], "halo exchange", this->comm())) return false;
  receives_[stage].clear();
  return true;
}

template <int D>
bool DatatypeTransport<D>::left() {
  if (!test_all(sends_, "halo exchange", this->comm())) return false;
  sends_.clear();
  return true;
}

#define ISOHALO_INSTANTIATE(D)     \
  template class HostTransport<D>; \
  template class DatatypeTransport<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
