#include "framework/neighborhood/iso_comm.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/list_check.hpp"
#include "framework/neighborhood/neighbor_operation.hpp"
#include "framework/neighborhood/type_mark.hpp"

namespace isohalo {

using detail::ListCheck;
using detail::NeighborOperation;
using detail::NeighborTags;

struct IsoComm::State {
  Communicator comm;
  IsomorphicNeighborhood neighbors;
  Algorithm forced = Algorithm::automatic;
  LinkCost link;
  bool link_known = false;  ///< measured or given
  struct Plan {
    std::shared_ptr<const Itinerary> itinerary;
    std::shared_ptr<const Route> route;
  };
  std::map<std::pair<Algorithm, Pattern>, Plan> plans;
  /// Times of the candidates by pattern and number of bits of the block size; equal on all ranks.
  std::map<std::pair<Pattern, int>, std::vector<double>> measured;
  /// What `choose` said before, by pattern and block size.
  std::map<std::pair<Pattern, std::int64_t>, Algorithm> chosen;
  /// The last blocking operations, used again for the same arguments.
  struct Recent {
    NeighborCall call;
    detail::TypeMarks types;
    std::unique_ptr<NeighborOperation> operation;
  };
  static constexpr std::size_t kRecent = 4;
  std::vector<Recent> recent;
  std::size_t next_recent = 0;

  /// The comparison of all ranks' lists that rides on the first operation.
  std::shared_ptr<ListCheck> check;
  bool checked_before = false, differed_before = false;  ///< by an object that is no more

  State(const Communicator& c, IsomorphicNeighborhood n) : comm(c), neighbors(std::move(n)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void forget_choices() {
    chosen.clear();
    recent.clear();
    next_recent = 0;
  }

  const Plan& plan(Algorithm algorithm, Pattern pattern) {
    Plan& found = plans[{algorithm, pattern}];
    if (found.itinerary) return found;
    const Mesh& mesh = neighbors.mesh();
    Itinerary it = plan_itinerary(neighbors.relative(), mesh.dimensions(), algorithm, pattern);
    if (algorithm == Algorithm::logarithmic) {  // a list without an order of its own may do better along the ring
      Itinerary ring = plan_ring_itinerary(neighbors.relative(), mesh, pattern);
      if (ring.rounds() < it.rounds() && messages_on(ring, mesh) < messages_on(it, mesh)) it = std::move(ring);
    }
    found.route = std::make_shared<const Route>(plan_route(it, neighbors.relative(), mesh, neighbors.rank()));
    found.itinerary = std::make_shared<const Itinerary>(std::move(it));
    return found;
  }

  std::unique_ptr<NeighborOperation> compile(Algorithm algorithm, const NeighborCall& call, bool own_types) {
    const Plan& p = plan(algorithm, call.pattern);
    return std::make_unique<NeighborOperation>(comm, neighbors, p.itinerary, p.route, call, own_types,
                                               [this, pattern = call.pattern] { return traffic(pattern); });
  }

  /// A call that only this rank cannot compile must not leave the others waiting; then it takes the tags.
  std::unique_ptr<NeighborOperation> compile_or_refuse(Algorithm algorithm, const NeighborCall& call,
                                                       bool own_types, TagLease& tags, bool starts) {
    try {
      return compile(algorithm, call, own_types);
    } catch (const ArgumentError& e) {
      refuse(call.pattern, algorithm, std::move(tags), starts, e);
      throw;
    } catch (const MpiError& e) {
      refuse(call.pattern, algorithm, std::move(tags), starts, ArgumentError(e.mpi_code(), e.what()));
      throw;
    } catch (const std::bad_alloc&) {
      refuse(call.pattern, algorithm, std::move(tags), starts, ArgumentError(MPI_ERR_NO_MEM, "out of memory"));
      throw;
    }
  }

  /// This rank cannot take part in the operation with these tags; the others begin it now if it `starts`.
  void refuse(Pattern pattern, Algorithm algorithm, TagLease tags, bool starts, const ArgumentError& error) {
    const auto absence = detail::Absence::begin(comm, std::move(tags), traffic(pattern), algorithm, error);
    if (starts) wait_until([&] { return absence->settled() || lists_differ(); }, comm.spins());
  }

  void remember(const NeighborCall& call, std::unique_ptr<NeighborOperation> operation) {
    Recent latest{call, detail::TypeMarks(call), std::move(operation)};
    if (recent.size() < kRecent) {
      recent.push_back(std::move(latest));
    } else {
      recent[next_recent] = std::move(latest);
      next_recent = (next_recent + 1) % kRecent;
    }
  }

  /// At every blocking operation, so that all ranks come to the measurement at the same one, whatever algorithm is
  /// set on some of them.
  void know_link() {
    if (link_known) return;
    link = known_link(comm);
    link_known = true;
    forget_choices();
  }

  std::uint64_t fingerprint() const { return neighbors.fingerprint() ^ (link_known ? 0x9e3779b97f4a7c15u : 0); }

  void forget(const NeighborOperation* operation) {
    std::erase_if(recent, [&](const Recent& r) { return r.operation.get() == operation; });
    next_recent = 0;
  }

  void begin_check() {
    if (!check && !checked_before) check = ListCheck::begin(comm, fingerprint());
  }

  /// Asks, or waits for the answer.
  void finish_check() {
    if (checked_before) return;
    if (!check) check = ListCheck::now(comm, fingerprint());
    wait_until([this] { return check->done(); }, comm.spins());
  }

  bool lists_differ() const { return differed_before || (check && check->failed()); }

  detail::NeighborTraffic traffic(Pattern pattern) {
    detail::NeighborTraffic t;
    for (Algorithm a : candidates(pattern)) t.add(a, *plan(a, pattern).route);
    return t;
  }

  /// Those that can be executed here.
  std::vector<Algorithm> candidates(Pattern pattern) {
    std::vector<Algorithm> list;
    for (Algorithm a : {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic})
      if (plan(a, pattern).itinerary->phases <= NeighborTags::kPhases) list.push_back(a);
    return list;
  }

  static int size_class(std::int64_t bytes) {
    int bits = 0;
    for (; bytes > 0; bytes >>= 1) ++bits;
    return bits;
  }

  NeighborChoice choose(Pattern pattern, std::int64_t bytes) {
    std::vector<AlgorithmFigures> figures;
    for (Algorithm a : candidates(pattern))
      figures.push_back(figures_of(*plan(a, pattern).itinerary, neighbors.mesh(), bytes, link));
    if (const auto times = measured.find({pattern, size_class(bytes)}); times != measured.end())
      for (std::size_t k = 0; k < figures.size(); ++k) figures[k].measured_s = times->second[k];
    NeighborChoice choice = cheapest(std::move(figures), bytes);
    choice.link = link;
    return choice;
  }

  /// Bytes of a block, for a call whose blocks have one size.
  static std::int64_t block_bytes(const NeighborCall& call) {
    if (call.is_reduction()) return call.fold.into.count * layout_of(call.fold.into.type).size;
    if (call.send.empty()) return 0;
    return call.send.front().count * layout_of(call.send.front().type).size;
  }

  Algorithm algorithm_for(const NeighborCall& call, bool blocking) {
    if (forced != Algorithm::automatic) return forced;
    if (!blocking || !call.one_size) return Algorithm::direct;
    const std::int64_t bytes = block_bytes(call);
    const auto [found, is_new] = chosen.try_emplace({call.pattern, bytes}, Algorithm::direct);
    if (is_new) found->second = choose(call.pattern, bytes).algorithm;
    return found->second;
  }
};

IsoComm::IsoComm(const Communicator& comm, IsomorphicNeighborhood neighborhood)
    : state_(std::make_shared<State>(comm, std::move(neighborhood))) {}

std::shared_ptr<const Mesh> mesh_of(MPI_Comm cart) {
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
  state_ = std::make_shared<State>(comm, IsomorphicNeighborhood(std::move(mesh), comm.rank(), relative));
}

const IsomorphicNeighborhood& IsoComm::neighbors() const {
  return state_->neighbors;
}
const Communicator& IsoComm::comm() const {
  return state_->comm;
}

namespace {

/// Tags that are still in use would mix up messages. All ranks come to this if they have ended the same operations.
void refuse_disputed(const TagLease& tags, bool persistent) {
  if (!tags.disputed()) return;
  const std::string room = std::to_string(tags.room());
  throw ArgumentError(
      MPI_ERR_OTHER,
      "neighborhood: this MPI has tags for " + room +
          (persistent ? " persistent requests made on a communicator while one of them lives: free "
                        "requests sooner, or use another communicator"
                      : " operations on a communicator while one of them is in flight: wait sooner"));
}

}  // namespace

void IsoComm::check() const {
  state_->finish_check();
  state_->check->rethrow();
}

void IsoComm::refuse(Pattern pattern, bool blocking, bool persistent, const ArgumentError& error) const {
  State& s = *state_;
  if (blocking) {
    s.finish_check();
    if (s.lists_differ()) return;  // the others know, and do not begin
    s.know_link();
  } else {
    s.begin_check();
  }
  TagLease tags(s.comm, NeighborTags::kCount, persistent ? TagLease::Stay::long_ : TagLease::Stay::short_);
  const Algorithm others = blocking || s.forced != Algorithm::automatic ? s.forced : Algorithm::direct;
  s.refuse(pattern, others, std::move(tags), !persistent, error);
}

FormerIsoComm::FormerIsoComm(const IsoComm& comm)
    : comm_(comm.comm()),
      neighbors_(comm.neighbors()),
      forced_(comm.state_->forced),
      checked_(comm.state_->check != nullptr),
      differed_(comm.state_->lists_differ()),
      link_known_(comm.state_->link_known) {}

void FormerIsoComm::refuse(Pattern pattern, bool blocking, bool persistent, const ArgumentError& error) const {
  const auto found = comm_.find();
  if (!found) return;
  const IsoComm again(*found, neighbors_);
  again.state_->forced = forced_;
  again.state_->checked_before = checked_;
  again.state_->differed_before = differed_;
  again.state_->link_known = link_known_;
  again.refuse(pattern, blocking, persistent, error);
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
  TagLease tags(s.comm, NeighborTags::kCount, TagLease::Stay::short_);
  refuse_disputed(tags, false);
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
        tags(state->comm, NeighborTags::kCount, persists ? TagLease::Stay::long_ : TagLease::Stay::short_),
        operation(compiled(call)) {}

  std::unique_ptr<NeighborOperation> compiled(const NeighborCall& call) {
    refuse_disputed(tags, persistent);
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
double time_of(const Communicator& comm, NeighborOperation& operation, int repeats) {
  comm.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < repeats; ++k) {
    const TagLease tags(comm, NeighborTags::kCount, TagLease::Stay::short_);
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
  const auto count = static_cast<std::size_t>(s.neighbors.count());
  const auto size = static_cast<std::size_t>(block_bytes);
  std::vector<std::byte> sent((pattern == Pattern::shared ? 1 : count) * size), received(count * size);
  const NeighborCall call = pattern == Pattern::shared
                                ? NeighborCall::allgather(s.neighbors, sent.data(), block_bytes, MPI_BYTE,
                                                          received.data(), block_bytes, MPI_BYTE)
                                : NeighborCall::alltoall(s.neighbors, sent.data(), block_bytes, MPI_BYTE,
                                                         received.data(), block_bytes, MPI_BYTE);
  std::vector<std::unique_ptr<NeighborOperation>> operations;
  for (Algorithm a : s.candidates(pattern)) operations.push_back(s.compile(a, call, false));
  std::vector<double> best(operations.size(), 1e300);
  int repeats = 1;
  constexpr double enough_s = 5e-4;  // of one measurement; five of each algorithm
  for (int round = -1; round < 5; ++round)
    for (std::size_t k = 0; k < operations.size(); ++k) {
      const double t = time_of(s.comm, *operations[k], repeats) / repeats;
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
  set_link(measured_link(s.comm));
  return s.link;
}

}  // namespace isohalo
