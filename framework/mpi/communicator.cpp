#include "framework/mpi/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/launcher.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

/// Ranks that were asked which of them share a compute node, and those on this rank's.
struct NodeGroup {
  MPI_Group all, here;
};

/// A communicator of this rank alone with the error handler of `comm`, so that the handler outlives it.
MPI_Comm alone_with_handler_of(MPI_Comm comm) {
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (MPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return alone;
  if (MPI_Comm_dup(MPI_COMM_SELF, &alone) == MPI_SUCCESS) MPI_Comm_set_errhandler(alone, handler);
  MPI_Errhandler_free(&handler);
  return alone;
}

}  // namespace

struct Communicator::State : std::enable_shared_from_this<Communicator::State> {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm user = MPI_COMM_NULL;
  MPI_Comm stand_in = MPI_COMM_NULL;  // has the user's error handler once the user's communicator is gone
  int rank = 0;
  int size = 1;
  int ranks_on_node = 1;
  int cores = 1;
  int tag_limit = 32767;
  int next_tag = 0;
  int next_leased[2] = {-1, -1};  // by stay
  std::vector<int> leased;        // tags of the leases that live

  State() = default;
  explicit State(MPI_Comm of);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();
  void release() noexcept;

  /// Every live duplicate, so that MPI_Finalize can release those whose owners outlive it. MPI is called from one
  /// thread at a time, and so is this.
  struct Registry {
    std::vector<State*> live;
    int keyval = MPI_KEYVAL_INVALID;  // on users' communicators: a shared pointer to the state of our duplicate
    int finalize_key = MPI_KEYVAL_INVALID;  // on MPI_COMM_SELF
    std::vector<NodeGroup> nodes;           // found so far
  };
  static Registry& registry();
  static int user_is_gone(MPI_Comm user, int, void* value, void*);
  static int release_all(MPI_Comm, int, void*, void*);
};

Communicator::State::Registry& Communicator::State::registry() {
  static Registry r;
  return r;
}

void Communicator::State::release() noexcept {
  if (comm != MPI_COMM_NULL && mpi_is_active()) {
    MPI_Comm_free(&comm);
    if (stand_in != MPI_COMM_NULL) MPI_Comm_free(&stand_in);
  }
  comm = MPI_COMM_NULL;
  if (user == stand_in) user = MPI_COMM_NULL;
  stand_in = MPI_COMM_NULL;
}

int Communicator::State::user_is_gone(MPI_Comm user, int, void* value, void*) {
  auto* const cached = static_cast<std::shared_ptr<State>*>(value);
  State& state = **cached;
  state.user = MPI_COMM_NULL;
  if (state.comm != MPI_COMM_NULL && cached->use_count() > 1)  // somebody may still report an error
    state.user = state.stand_in = alone_with_handler_of(user);
  delete cached;
  return MPI_SUCCESS;
}

/// MPI deletes the attributes of MPI_COMM_SELF first of all in MPI_Finalize, while every call still works.
int Communicator::State::release_all(MPI_Comm, int, void*, void*) {
  Registry& r = registry();
  for (NodeGroup& n : std::exchange(r.nodes, {})) {
    MPI_Group_free(&n.all);
    MPI_Group_free(&n.here);
  }
  while (!r.live.empty()) {  // freeing a communicator may end other states, which leave the list then
    State* const last = r.live.back();
    r.live.pop_back();
    last->release();
  }
  return MPI_SUCCESS;
}

namespace {

/// Asks MPI when no communicator with all these ranks was seen before; then all of them have seen it. Collective.
int count_ranks_on_node(MPI_Comm comm, int size, std::vector<NodeGroup>& known) {
  MPI_Group all = MPI_GROUP_NULL;
  mpi_check(MPI_Comm_group(comm, &all), "MPI_Comm_group");
  for (const NodeGroup& n : known)
    if (detail::count_common(all, size, n.all) == size) {
      const int here = detail::count_common(all, size, n.here);
      MPI_Group_free(&all);
      return here;
    }
  NodeGroup found{all, MPI_GROUP_NULL};
  int n = size;
  if (detail::launched_on_one_node(comm)) {
    mpi_check(MPI_Group_union(all, MPI_GROUP_EMPTY, &found.here), "MPI_Group_union");
  } else {
    MPI_Comm node = MPI_COMM_NULL;
    mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    mpi_check(MPI_Comm_size(node, &n), "MPI_Comm_size");
    mpi_check(MPI_Comm_group(node, &found.here), "MPI_Comm_group");
    MPI_Comm_free(&node);
  }
  known.push_back(found);
  return n;
}

}  // namespace

Communicator::State::State(MPI_Comm of) : State() {  // so that what is made is freed when the rest throws
  constexpr int some_spins = 20;                     // the number of ranks on this node is not known yet
  comm = duplicate(of, some_spins);
  mpi_check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  if (size > 1) ranks_on_node = count_ranks_on_node(comm, size, registry().nodes);
  cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  int* limit = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&limit), &found), "MPI_Comm_get_attr");
  if (found) tag_limit = *limit;
  user = of;
  registry().live.push_back(this);
}

Communicator::State::~State() {
  std::erase(registry().live, this);
  release();
}

Communicator Communicator::of(MPI_Comm user) {
  require_mpi();
  if (user == MPI_COMM_NULL)
    throw UsageError("the communicator is MPI_COMM_NULL: pass one that this rank belongs to");
  State::Registry& r = State::registry();
  if (r.keyval == MPI_KEYVAL_INVALID) {
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, State::user_is_gone, &r.keyval, nullptr),
              "MPI_Comm_create_keyval");
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, State::release_all, &r.finalize_key, nullptr),
              "MPI_Comm_create_keyval");
    mpi_check(MPI_Comm_set_attr(MPI_COMM_SELF, r.finalize_key, nullptr), "MPI_Comm_set_attr");
  }
  for (State* own : r.live)  // one of our own duplicates needs no other
    if (own->comm == user) return Communicator(own->shared_from_this());
  void* value = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(user, r.keyval, static_cast<void*>(&value), &found), "MPI_Comm_get_attr");
  if (found)
    if (const auto& state = *static_cast<std::shared_ptr<State>*>(value); state->comm != MPI_COMM_NULL)
      return Communicator(state);
  int inter = 0;
  mpi_check(MPI_Comm_test_inter(user, &inter), "MPI_Comm_test_inter");
  if (inter) throw UsageError("the communicator is an inter-communicator: pass an intra-communicator");
  auto state = std::make_shared<State>(user);
  mpi_check(MPI_Comm_set_attr(user, r.keyval, new std::shared_ptr<State>(state)), "MPI_Comm_set_attr");
  return Communicator(std::move(state));
}

MPI_Comm Communicator::get() const {
  if (state_->comm == MPI_COMM_NULL) require_mpi();  // it was freed in MPI_Finalize
  return state_->comm;
}
MPI_Comm Communicator::user() const {
  return state_->user;
}
int Communicator::rank() const {
  return state_->rank;
}
int Communicator::size() const {
  return state_->size;
}
int Communicator::ranks_on_node() const {
  return state_->ranks_on_node;
}
MPI_Comm Communicator::make_node_communicator() const {
  MPI_Comm node = MPI_COMM_NULL;
  if (ranks_on_node() == size())  // dividing them takes MPI far longer where ranks outnumber the cores
    node = duplicate(get(), spins());
  else
    mpi_check(MPI_Comm_split_type(get(), MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &node), "MPI_Comm_split_type",
              get());
  mpi_check(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return node;
}
bool Communicator::oversubscribed() const {
  return state_->ranks_on_node > state_->cores;
}
int Communicator::spins() const {
  return oversubscribed() ? 20 : 2000;
}

int Communicator::take_tags(int count) const {
  const int most = state_->tag_limit / 4;
  if (count > most)
    throw UsageError("an object needs " + std::to_string(count) + " message tags, MPI offers " +
                     std::to_string(most));
  int& next = state_->next_tag;
  if (next > most - count) next = 0;
  next += count;
  return next - count;
}

TagLease::TagLease(const Communicator& comm, Stay stay) {
  Communicator::State& state = *comm.state_;
  const int limit = state.tag_limit;
  // The lowest quarter is that of `take_tags`.
  const auto [low, high] =
      stay == Stay::long_ ? std::pair(limit / 4, limit / 2) : std::pair(limit - limit / 4, limit);
  int& next = state.next_leased[static_cast<int>(stay)];
  tag_ = next < low || next >= high ? low : next;
  if (std::find(state.leased.begin(), state.leased.end(), tag_) != state.leased.end())
    throw MpiError(MPI_ERR_OTHER, "this MPI has tags for " + std::to_string(high - low) +
                                      (stay == Stay::long_
                                           ? " persistent requests made on a communicator while one of them lives: "
                                             "free requests sooner, or use another communicator"
                                           : " operations on a communicator while one of them is in flight: wait "
                                             "sooner"));
  next = tag_ + 1;
  state.leased.push_back(tag_);
  state_ = comm.state_;
}

TagLease::~TagLease() {
  if (!state_) return;
  std::erase(state_->leased, tag_);
}

void Communicator::wait(std::span<MPI_Request> requests, const char* place) const {
  wait_all(requests, spins(), place);
}

void Communicator::barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Ibarrier(get(), &request), "MPI_Ibarrier", get());
  wait(request, "barrier");
}

void Communicator::broadcast(void* data, std::int64_t bytes, int root) const {
  if (size() == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(mpi::ibcast(data, bytes, MPI_BYTE, root, get(), &request), "MPI_Ibcast_c", get());
  wait(request, "broadcast");
}

void Communicator::allreduce(void* in_out, int count, MPI_Datatype type, MPI_Op op) const {
  if (size() == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, in_out, count, type, op, get(), &request), "MPI_Iallreduce", get());
  wait(request, "allreduce");
}

}  // namespace isohalo
