#include "framework/halo/halo_mover.hpp"

#include <algorithm>

#include "datatypes/mpi_check.hpp"
#include "framework/halo/ghost_fill.hpp"

namespace isohalo::detail {

void withdraw_receives(std::span<MPI_Request> receives) noexcept {
  for (MPI_Request& r : receives) {
    if (r == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
}

template <int D>
HaloMover<D>::HaloMover(const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules,
                        ExchangeStores stores)
    : domain_(domain),
      first_tag_(first_tag),
      schedules_(std::move(schedules)),
      stores_(stores),
      copiers_(stages()) {
  for (const auto& schedule : schedules_)
    for (std::size_t k = 0; k < stages(); ++k) {
      BoxCopier<D>& copier = copiers_[k].emplace_back();
      for (const auto& copy : schedule.stages[k].copies)
        copy.ghosts.for_each_box([&](const Box<D>& b) { copier.add({b, copy.shift}); });
    }
}

template <int D>
void HaloMover<D>::start(std::span<const ErasedArray<D>> arrays, bool patient) {
  patient_ = patient;
  arrays_.assign(arrays.begin(), arrays.end());
  stage_ = 0;
  in_flight_ = true;
  post_receives();
  enter(0);
  if (needed_after_start()) Progressable::activate(this);
}

template <int D>
void HaloMover<D>::enter(std::size_t stage) {
  send(stage);
  for (std::size_t f = 0; f < arrays_.size(); ++f) {
    copiers_[stage][schedule_of(f)].run(arrays_[f], stores_.in_place);
    if (const auto& fill = schedules_[schedule_of(f)].stages[stage].fill) fill->run(arrays_[f]);
  }
}

template <int D>
bool HaloMover<D>::proceed() {
  while (stage_ < stages()) {
    if (!received(stage_)) return false;
    if (++stage_ < stages()) enter(stage_);
  }
  return sent();
}

template <int D>
void HaloMover<D>::finish(Farewell* farewell) {
  Progressable::deactivate(this);
  Farewell::Ear ear(farewell);
  const auto done = [this, &ear] {
    if (proceed()) return true;
    ear.listen();
    return false;
  };
  wait_until(done, domain_.comm().spins());
  in_flight_ = false;
}

template <int D>
void HaloMover<D>::add_peers(std::set<int>& peers) const {
  for (const auto& schedule : schedules_)
    for (const auto& stage : schedule.stages)
      for (const auto* side : {&stage.send, &stage.receive})
        for (const auto& m : *side) peers.insert(m.peer);
}

namespace {

bool test_all(std::vector<MPI_Request>& requests, MPI_Comm comm) {
  if (requests.empty()) return true;
  int done = 0;
  mpi_check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
            "halo exchange", comm);
  if (done) requests.clear();
  return done != 0;
}

}  // namespace

template <int D>
Datatype DatatypeMover<D>::type_of(const HaloMessage<D>& message, const ErasedArray<D>& a) const {
  Datatype element = a.element ? a.element() : bytes_type(a.bytes);
  if (a.pitch != a.bytes) element = resized_type(element, a.pitch);
  std::vector<Datatype> parts;
  for (const auto& r : message.regions)
    parts.push_back(region_type(r, this->domain_.owned().low, a.stride, element.get()));
  return parts.size() == 1 ? std::move(parts.front()) : joined_type(parts);
}

template <int D>
const typename DatatypeMover<D>::Layout& DatatypeMover<D>::layout_of(std::size_t array) {
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
void DatatypeMover<D>::post_receives() {
  const MPI_Comm comm = this->domain_.comm().get();
  send_peers_.clear();
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
void DatatypeMover<D>::send(std::size_t stage) {
  const MPI_Comm comm = this->domain_.comm().get();
  for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
    const auto& types = layout_of(f).send[stage];
    const auto& messages = this->schedules_[this->schedule_of(f)].stages[stage].send;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      send_peers_.push_back(messages[m].peer);
      mpi_check(MPI_Isend(this->arrays_[f].data, 1, types[m].get(), messages[m].peer,
                          this->first_tag_ + static_cast<int>(f), comm, &sends_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend in a halo exchange", comm);
    }
  }
}

template <int D>
bool DatatypeMover<D>::received(std::size_t stage) {
  return test_all(receives_[stage], this->domain_.comm().get());
}
template <int D>
bool DatatypeMover<D>::sent() {
  return test_all(sends_, this->domain_.comm().get());
}

/// MPI keeps the types of what nobody has taken.
template <int D>
DatatypeMover<D>::~DatatypeMover() {
  if (!mpi_is_active()) return;
  for (MPI_Request& r : sends_)
    if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
}

/// What is sent lies in the arrays.
template <int D>
bool DatatypeMover<D>::withdraw() noexcept {
  for (auto& stage : receives_) withdraw_receives(stage);
  return true;
}

template <int D>
bool DatatypeMover<D>::let_go(std::span<const int> gone) {
  bool all = true;
  for (std::size_t k = 0; k < sends_.size(); ++k) {
    int done = 0;
    mpi_check(MPI_Test(&sends_[k], &done, MPI_STATUS_IGNORE), "halo exchange", this->domain_.comm().get());
    all = all && (done || std::find(gone.begin(), gone.end(), send_peers_[k]) != gone.end());
  }
  return all;
}

#define ISOHALO_INSTANTIATE(D) \
  template class HaloMover<D>; \
  template class DatatypeMover<D>;
ISOHALO_INSTANTIATE(1)
ISOHALO_INSTANTIATE(2)
ISOHALO_INSTANTIATE(3)
ISOHALO_INSTANTIATE(4)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
