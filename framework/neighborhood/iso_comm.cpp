#include "framework/neighborhood/iso_comm.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/iso_comm_state.hpp"

namespace isohalo {

using detail::NeighborOperation;
using detail::NeighborTags;

IsoComm::IsoComm(const Communicator& comm, const std::function<IsomorphicNeighborhood()>& make) {
  auto identity = std::make_shared<detail::IsoIdentity>(comm);
  try {
    state_ = std::make_shared<State>(comm, make(), identity);
  } catch (...) {
    identity->stay_away(comm, current_argument_error());
    throw;
  }
}

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
  *this = IsoComm(comm, [&] { return IsomorphicNeighborhood(std::move(mesh), comm.rank(), relative); });
}

namespace {
TagLease::Stay stay(bool persistent) {
  return persistent ? TagLease::Stay::long_ : TagLease::Stay::short_;
}
}  // namespace

const IsomorphicNeighborhood& IsoComm::neighbors() const {
  return state_->neighbors;
}
const Communicator& IsoComm::comm() const {
  return state_->comm;
}

void IsoComm::check() const {
  state_->finish_check();
  state_->check->rethrow();
}

void IsoComm::refuse(Pattern pattern, bool blocking, bool persistent, const ArgumentError& error) const {
  State& s = *state_;
  try {
    if (blocking)
      s.finish_check();
    else
      s.begin_check();
    if (blocking && s.lists_differ()) return;  // the others know, and do not begin
    if (blocking) s.know_link();
  } catch (const ArgumentError&) {  // nor when a rank stays away
    return;
  }
  s.refuse(pattern, s.algorithm_of_others(blocking), s.lease(stay(persistent)), !persistent, error);
}

FormerIsoComm::FormerIsoComm(const IsoComm& comm)
    : comm_(comm.comm()),
      neighbors_(comm.neighbors()),
      identity_(comm.state_->identity),
      forced_(comm.state_->forced),
      differed_(comm.state_->lists_differ()),
      link_known_(comm.state_->link_known) {}

std::optional<IsoComm> FormerIsoComm::again() const {
  const auto found = comm_.find();
  if (!found) return std::nullopt;
  IsoComm comm(std::make_shared<IsoComm::State>(*found, neighbors_, identity_));
  comm.state_->forced = forced_;
  comm.state_->link_known = link_known_;
  return comm;
}

void FormerIsoComm::refuse_check(const ArgumentError& error) const {
  if (const auto comm = comm_.find()) identity_->stay_away(*comm, error);
}

/// What this rank begins alone would put later operations of the communicator out of step, when the others have
/// freed it as well; what they begin without it, too. So it takes part in a comparison of the lists when it has
/// heard from them; of the others' persistent requests it hears only later, when they start them.
void FormerIsoComm::refuse(Pattern pattern, bool blocking, bool persistent, const ArgumentError& error) const {
  const auto comm = again();
  if (!comm || differed_) return;
  IsoComm::State& s = *comm->state_;
  if (blocking && s.meets_before_blocking()) {
    identity_->stay_away(s.comm, error);
    return;
  }
  if (persistent && !identity_->check_begun) identity_->stay_away(s.comm, error);
  const bool waits = !persistent && !identity_->deserted;
  const bool came = s.refuse(pattern, s.algorithm_of_others(blocking), s.lease(stay(persistent)), waits, error);
  if (!waits) return;
  identity_->deserted = !came;
  if (came) s.begin_check();
}

void IsoComm::set_algorithm(Algorithm algorithm) {
  state_->forced = algorithm;
  state_->forget_choices();
}

const Itinerary& IsoComm::itinerary(Algorithm algorithm, Pattern pattern) const {
  return *state_->plan(algorithm, pattern).itinerary;
}

void IsoComm::set_link(const LinkCost& link) {
  state_->link = link;
  state_->link_known = true;
  state_->forget_choices();
}

NeighborChoice IsoComm::choice(Pattern pattern, std::int64_t block_bytes) const {
  return state_->choose(pattern, block_bytes);
}

void IsoComm::execute(const NeighborCall& call) const {
  State& s = *state_;
  if (!s.check || !s.check->passed()) check();
  s.know_link();
  TagLease tags = s.lease(TagLease::Stay::short_);
  s.refuse_disputed(call.pattern, tags, TagLease::Stay::short_);
  const detail::NeighborTicket ticket(tags);
  const auto known = std::find_if(s.recent.begin(), s.recent.end(),
                                  [&](const auto& r) { return r.call == call && r.types.hold(); });
  NeighborOperation* operation = known != s.recent.end() ? known->operation.get() : nullptr;
  if (!operation) {
    auto latest = s.compile_or_refuse(s.algorithm_for(call, true), call, false, tags, true);
    operation = latest.get();
    s.remember(call, std::move(latest));
  }
  operation->start(ticket);
  Backoff backoff(s.comm.spins());
  for (;;) {
    operation->advance();
    if (!operation->active()) break;
    backoff.pause();
  }
  if (operation->stopped()) {
    const ArgumentError error = operation->error();
    s.forget(operation);
    throw error;
  }
  operation->rethrow();
}

struct detail::NeighborRequestImpl {
  std::shared_ptr<IsoComm::State> state;
  Algorithm algorithm;
  bool persistent;
  TagLease tags;
  std::unique_ptr<NeighborOperation> operation;
  bool started = false;
  /// Why a persistent one is of no use any more: what is left of a start that was given up could be taken for the
  /// next.
  std::optional<ArgumentError> ended;

  NeighborRequestImpl(std::shared_ptr<IsoComm::State> s, const NeighborCall& call, bool persists)
      : state(std::move(s)),
        algorithm(state->algorithm_for(call, false)),
        persistent(persists),
        tags(state->lease(stay(persists))),
        operation(compiled(call)) {}

  std::unique_ptr<NeighborOperation> compiled(const NeighborCall& call) {
    state->refuse_disputed(call.pattern, tags, stay(persistent));
    return state->compile_or_refuse(algorithm, call, true, tags, !persistent);
  }

  void start() {
    if (started)
      throw ArgumentError(MPI_ERR_REQUEST, "neighborhood: start of a request that is active: wait for it first");
    if (ended) throw ArgumentError(*ended);
    operation->start(detail::NeighborTicket(tags), state->check->passed() ? nullptr : state->check);
    started = operation->active();
    if (!started) report();
  }

  /// Throws what went wrong.
  void report() {
    try {
      operation->rethrow();
    } catch (const ArgumentError& e) {
      if (operation->stopped())
        ended.emplace(e.mpi_class(), std::string(e.what()) + " (at an earlier start; free the request)");
      throw;
    }
  }

  /// True when nothing is in flight any more.
  bool poll() {
    if (!started) return true;
    operation->advance();
    if (operation->active()) return false;
    started = false;
    report();
    return true;
  }

  void wait() {
    Backoff backoff(state->comm.spins());
    while (!poll()) backoff.pause();
  }
};

std::unique_ptr<detail::NeighborRequestImpl> IsoComm::make(const NeighborCall& call, bool persistent) const {
  state_->begin_check();
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

FormerNeighborRequest::FormerNeighborRequest(const NeighborRequest& request)
    : comm_(IsoComm(request.impl_->state)),
      tags_(request.impl_->tags.former()),
      pattern_(request.impl_->operation->call().pattern),
      algorithm_(request.impl_->algorithm) {}

void FormerNeighborRequest::refuse(const ArgumentError& error) const {
  const auto comm = comm_.again();
  auto tags = TagLease::again(tags_);
  if (comm && tags) comm->state_->refuse(pattern_, algorithm_, std::move(*tags), true, error);
}

NeighborRequest::NeighborRequest(std::unique_ptr<detail::NeighborRequestImpl> impl) : impl_(std::move(impl)) {}
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
const IsomorphicNeighborhood& NeighborRequest::neighbors() const {
  return impl_->state->neighbors;
}
bool NeighborRequest::active() const {
  return impl_ && impl_->started;
}
void NeighborRequest::start() {
  if (!impl_ || !impl_->persistent)
    throw ArgumentError(MPI_ERR_REQUEST, "neighborhood: start of a request that is not persistent");
  impl_->start();
}
bool NeighborRequest::test() {
  if (!impl_ || impl_->poll()) return true;
  Progressable::advance_all();
  return impl_->poll();
}
void NeighborRequest::wait() {
  if (impl_) impl_->wait();
}
Algorithm NeighborRequest::algorithm() const {
  return impl_ ? impl_->algorithm : Algorithm::automatic;
}
std::int64_t NeighborRequest::messages() const {
  return impl_ ? impl_->operation->route().messages() : 0;
}
std::int64_t NeighborRequest::bytes() const {
  return impl_ ? impl_->operation->bytes_sent() : 0;
}

namespace {

/// Seconds of `repeats` executions, the slowest rank's. Collective.
double time_of(const Communicator& comm, TagSeries& series, NeighborOperation& operation, int repeats) {
  comm.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < repeats; ++k) {
    const TagLease tags(comm, series, NeighborTags::kCount, TagLease::Stay::short_);
    operation.start(detail::NeighborTicket(tags));
    Backoff backoff(comm.spins());
    for (operation.advance(); operation.active(); operation.advance()) backoff.pause();
  }
  double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  comm.allreduce(&s, 1, MPI_DOUBLE, MPI_MAX);
  return s;
}

}  // namespace

NeighborChoice IsoComm::tune(Pattern pattern, std::int64_t block_bytes) {
  check();
  State& s = *state_;
  s.identity->meet(s.comm, {});  // its collectives are paired by their order
  const auto count = static_cast<std::size_t>(s.neighbors.count());
  const auto size = static_cast<std::size_t>(block_bytes);
  std::vector<std::byte> sent((pattern == Pattern::shared ? 1 : count) * size), received(count * size);
  const NeighborCall call = pattern == Pattern::shared
                                ? NeighborCall::allgather(s.neighbors, sent.data(), block_bytes, MPI_BYTE,
                                                          received.data(), block_bytes, MPI_BYTE)
                                : NeighborCall::alltoall(s.neighbors, sent.data(), block_bytes, MPI_BYTE,
                                                         received.data(), block_bytes, MPI_BYTE);
  std::vector<std::unique_ptr<NeighborOperation>> operations;
  for (Algorithm a : State::kCandidates) operations.push_back(s.compile(a, call, false));
  std::vector<double> best(operations.size(), 1e300);
  int repeats = 1;
  constexpr double enough_s = 5e-4;  // of one measurement; five of each algorithm
  for (int round = -1; round < 5; ++round)
    for (std::size_t k = 0; k < operations.size(); ++k) {
      const double t = time_of(s.comm, s.identity->tags, *operations[k], repeats) / repeats;
      if (round >= 0)
        best[k] = std::min(best[k], t);
      else if (k == 0)
        repeats = static_cast<int>(std::clamp(enough_s / std::max(t, 1e-9), 1.0, 1000.0));
    }
  s.measured[{pattern, State::size_class(block_bytes)}] = best;
  s.forget_choices();
  return s.choose(pattern, block_bytes);
}

LinkCost IsoComm::measure_link() {
  State& s = *state_;
  s.identity->meet(s.comm, {});
  set_link(measured_link(s.comm));
  return s.link;
}

}  // namespace isohalo
