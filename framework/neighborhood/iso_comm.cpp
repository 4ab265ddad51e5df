#include "framework/neighborhood/iso_comm.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/iso_comm_state.hpp"

namespace isohalo {

using detail::NeighborOperation;

IsoComm::IsoComm(const Communicator& comm, IsomorphicNeighborhood neighbors)
    : state_(std::make_shared<State>(comm, std::move(neighbors))) {}

std::shared_ptr<const Mesh> mesh_of(MPI_Comm cart) {
  require_mpi();
  int kind = MPI_UNDEFINED;
  if (cart != MPI_COMM_NULL) mpi_check(MPI_Topo_test(cart, &kind), "MPI_Topo_test");
  if (kind != MPI_CART)
    throw ArgumentError(MPI_ERR_TOPOLOGY,
                        "neighborhood: the communicator has no Cartesian topology: make one with MPI_Cart_create");
  int d = 0;
  mpi_check(MPI_Cartdim_get(cart, &d), "MPI_Cartdim_get");
  std::vector<int> extents(static_cast<std::size_t>(d)), periods(extents), coords(extents);
  mpi_check(MPI_Cart_get(cart, d, extents.data(), periods.data(), coords.data()), "MPI_Cart_get");
  return std::make_shared<const Mesh>(extents, std::vector<bool>(periods.begin(), periods.end()));
}

IsoComm::IsoComm(MPI_Comm cart, std::span<const int> relative) {
  auto mesh = mesh_of(cart);  // refuses before anything is duplicated
  const Communicator comm = Communicator::of(cart);
  *this = IsoComm(comm, IsomorphicNeighborhood(std::move(mesh), comm.rank(), relative));
}

const IsomorphicNeighborhood& IsoComm::neighbors() const {
  return state_->neighbors;
}
const Communicator& IsoComm::comm() const {
  return state_->comm;
}

void IsoComm::check() const {
  const auto comparison = state_->compare();
  comparison->wait();
  State::refuse_different(*comparison);
}

void IsoComm::set_algorithm(Algorithm algorithm) {
  state_->forced = algorithm;
  state_->recent.clear();
  state_->next_recent = 0;
}

const NeighborSchedule& IsoComm::schedule(Algorithm algorithm, Pattern pattern) const {
  return state_->schedule(algorithm, pattern);
}

NeighborChoice IsoComm::choice(Pattern pattern, std::int64_t block_bytes) const {
  return state_->choose(pattern, block_bytes);
}

void IsoComm::execute(const NeighborCall& call) const {
  State& s = *state_;
  s.compare_with_first_operation();
  const TagLease tag(s.comm, TagLease::Stay::short_);
  const auto known = std::find_if(s.recent.begin(), s.recent.end(),
                                  [&](const auto& r) { return r.call == call && r.types.hold(); });
  NeighborOperation* operation = known != s.recent.end() ? known->operation.get() : nullptr;
  if (!operation) {
    auto latest = s.compile(s.algorithm_for(call, true), call, false);
    operation = latest.get();
    s.remember(call, std::move(latest));
  }
  operation->start(tag.tag());
  Backoff backoff(s.comm.spins());
  for (;;) {
    operation->test();
    if (s.passes_or_abandons(*operation) && !operation->active()) break;
    backoff.pause();
  }
  if (!operation->abandoned()) return operation->rethrow();
  const ArgumentError error = operation->error();
  s.forget(operation);
  throw error;
}

struct detail::NeighborRequestImpl {
  std::shared_ptr<IsoComm::State> state;
  bool persistent;
  TagLease tag;
  std::unique_ptr<NeighborOperation> operation;
  bool started = false;

  NeighborRequestImpl(std::shared_ptr<IsoComm::State> s, const NeighborCall& call, bool persists)
      : state(std::move(s)),
        persistent(persists),
        tag(state->comm, persists ? TagLease::Stay::long_ : TagLease::Stay::short_),
        operation(state->compile(state->algorithm_for(call, false), call, true)) {}

  void start() {
    if (started)
      throw ArgumentError(MPI_ERR_REQUEST, "neighborhood: start of a request that is active: wait for it first");
    operation->start(tag.tag());
    started = true;
    if (!operation->active()) poll();
  }

  /// True when nothing is in flight any more; throws what went wrong.
  bool poll() {
    if (!started) return true;
    operation->test();
    try {
      if (!state->passes_or_abandons(*operation) || operation->active()) return false;
    } catch (...) {
      started = false;
      throw;
    }
    started = false;
    operation->rethrow();
    return true;
  }

  void wait() {
    Backoff backoff(state->comm.spins());
    while (!poll()) backoff.pause();
  }
};

std::unique_ptr<detail::NeighborRequestImpl> IsoComm::make(const NeighborCall& call, bool persistent) const {
  state_->compare_with_first_operation();
  return std::make_unique<detail::NeighborRequestImpl>(state_, call, persistent);
}

NeighborRequest IsoComm::begin(const NeighborCall& call) const {
  NeighborRequest r(make(call, false));
  r.impl_->start();
  return r;
}

NeighborRequest IsoComm::prepare(const NeighborCall& call) const {
  return NeighborRequest(make(call, true));
}

NeighborRequest::NeighborRequest(std::unique_ptr<detail::NeighborRequestImpl> impl) : impl_(std::move(impl)) {}
NeighborRequest::NeighborRequest() noexcept = default;
NeighborRequest::NeighborRequest(NeighborRequest&&) noexcept = default;
NeighborRequest& NeighborRequest::operator=(NeighborRequest&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

NeighborRequest::~NeighborRequest() {
  if (!impl_ || !impl_->started || !mpi_is_active()) return;
  try {
    impl_->wait();
  } catch (const Error&) {  // reported to those who wait
  }
}

bool NeighborRequest::persistent() const {
  return impl_ && impl_->persistent;
}
void NeighborRequest::start() {
  if (!impl_ || !impl_->persistent)
    throw ArgumentError(MPI_ERR_REQUEST, "neighborhood: start of a request that is not persistent");
  impl_->start();
}
bool NeighborRequest::test() {
  if (!impl_ || impl_->poll()) return true;
  Operation::advance_all();
  return impl_->poll();
}
void NeighborRequest::wait() {
  if (impl_) impl_->wait();
}

}  // namespace isohalo
