#include "framework/neighborhood/iso_comm.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/neighborhood/neighbor_operation.hpp"

namespace isohalo {

using detail::NeighborOperation;

namespace {

/// How many of the types that `watch_types` has seen were freed. Only a handle that was freed can come to name
/// another type.
std::int64_t freed_types = 0;

/// Sees to it that the derived types of a call are counted when they are freed; `freed_types` as it is now, or -1
/// when there are none in the call.
std::int64_t watch_types(const NeighborCall& call) {
  static const int key = [] {
    int k = MPI_KEYVAL_INVALID;
    const auto freed = [](MPI_Datatype, int, void*, void*) { return ++freed_types, MPI_SUCCESS; };
    mpi_check(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, freed, &k, nullptr), "MPI_Type_create_keyval");
    return k;
  }();
  bool any = false;
  MPI_Datatype last = MPI_DATATYPE_NULL;  // which absent blocks have, too
  const auto watch = [&](MPI_Datatype type) {
    if (type == MPI_DATATYPE_NULL || type == std::exchange(last, type) || layout_of(type).predefined) return;
    any = true;
    void* none = nullptr;
    int watched = 0;
    mpi_check(MPI_Type_get_attr(type, key, static_cast<void*>(&none), &watched), "MPI_Type_get_attr");
    if (!watched) mpi_check(MPI_Type_set_attr(type, key, nullptr), "MPI_Type_set_attr");
  };
  for (const auto* side : {&call.send, &call.receive})
    for (const Block& b : *side) watch(b.type);
  if (call.is_reduction()) watch(call.fold.into.type);
  return any ? freed_types : -1;
}

}  // namespace

/// What copies share.
struct IsoComm::State {
  Communicator comm;
  IsomorphicNeighborhood neighbors;
  Algorithm forced = Algorithm::automatic;
  std::map<std::pair<Algorithm, Pattern>, NeighborSchedule> schedules;
  std::map<std::pair<Algorithm, Pattern>, std::shared_ptr<const LocalSchedule>> locals;
  /// What `choose` said before, by pattern and block size.
  std::map<std::pair<Pattern, std::int64_t>, Algorithm> chosen;
  /// The last blocking operations, used again for the same arguments.
  struct Recent {
    NeighborCall call;
    std::int64_t types;  ///< what `watch_types` said
    std::unique_ptr<NeighborOperation> operation;
    bool does(const NeighborCall& other) const {
      return (types < 0 || types == freed_types) && call == other && !operation->abandoned();
    }
  };
  static constexpr std::size_t kRecent = 4;
  std::vector<Recent> recent;
  std::size_t next_recent = 0;

  bool compared = false;  ///< what must be equal on all ranks

  State(const Communicator& c, IsomorphicNeighborhood n) : comm(c), neighbors(std::move(n)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const NeighborSchedule& schedule(Algorithm algorithm, Pattern pattern) {
    if (const auto found = schedules.find({algorithm, pattern}); found != schedules.end()) return found->second;
    const Mesh& mesh = neighbors.mesh();
    NeighborSchedule made = plan_neighbor_schedule(neighbors.relative(), mesh.dimensions(), algorithm, pattern);
    if (algorithm == Algorithm::logarithmic) {  // a list without an order of its own may do better along the ring
      NeighborSchedule ring = plan_ring_schedule(neighbors.relative(), mesh, pattern);
      if (ring.rounds() < made.rounds() && messages_on(ring, mesh) < messages_on(made, mesh))
        made = std::move(ring);
    }
    return schedules.emplace(std::pair(algorithm, pattern), std::move(made)).first->second;
  }

  std::unique_ptr<NeighborOperation> compile(Algorithm algorithm, const NeighborCall& call, bool own_types) {
    auto& local = locals[{algorithm, call.pattern}];
    if (!local)
      local = std::make_shared<const LocalSchedule>(
          algorithm == Algorithm::direct && call.pattern == Pattern::personal
              ? direct_local_schedule(neighbors)
              : plan_local_schedule(schedule(algorithm, call.pattern), neighbors.relative(), neighbors.mesh(),
                                    neighbors.rank()));
    return std::make_unique<NeighborOperation>(comm, neighbors, local, call, own_types);
  }

  void remember(const NeighborCall& call, std::unique_ptr<NeighborOperation> operation) {
    Recent latest{call, watch_types(call), std::move(operation)};
    if (recent.size() < kRecent) {
      recent.push_back(std::move(latest));
    } else {
      recent[next_recent] = std::move(latest);
      next_recent = (next_recent + 1) % kRecent;
    }
  }

  NeighborChoice choose(Pattern pattern, std::int64_t bytes) {
    std::vector<AlgorithmFigures> figures;
    for (Algorithm a : {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic})
      figures.push_back(figures_of(schedule(a, pattern), neighbors.mesh(), bytes));
    return cheapest(std::move(figures), bytes);
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
  try {
    agree_same(comm(), "neighborhood",
               {{"offsets", text_of_list(neighbors().relative())}, {"algorithm", to_string(state_->forced)}});
  } catch (const UsageError& e) {
    throw ArgumentError(MPI_ERR_TOPOLOGY, e.what());
  }
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
  // Not in `begin` or `start`: they must not wait for ranks that have not begun.
  if (!s.compared && checks_communication()) check();
  s.compared = true;
  const TagLease tag(s.comm, TagLease::Stay::short_);
  const auto known = std::find_if(s.recent.begin(), s.recent.end(), [&](const auto& r) { return r.does(call); });
  NeighborOperation* operation = known != s.recent.end() ? known->operation.get() : nullptr;
  if (!operation) {
    auto latest = s.compile(s.algorithm_for(call, true), call, false);
    operation = latest.get();
    s.remember(call, std::move(latest));
  }
  operation->start(tag.tag());
  operation->wait(s.comm.spins());
  operation->rethrow();
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
    if (operation->active()) return false;
    started = false;
    operation->rethrow();
    return true;
  }

  void wait() {
    if (started) operation->wait(state->comm.spins());
    poll();
  }
};

NeighborRequest IsoComm::begin(const NeighborCall& call) const {
  NeighborRequest r(std::make_unique<detail::NeighborRequestImpl>(state_, call, false));
  r.impl_->start();
  return r;
}

NeighborRequest IsoComm::prepare(const NeighborCall& call) const {
  return NeighborRequest(std::make_unique<detail::NeighborRequestImpl>(state_, call, true));
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
