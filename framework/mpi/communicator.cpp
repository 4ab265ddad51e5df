#include "framework/mpi/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/launcher.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

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
  int next_passing_tag = 0;
  int next_leased[2] = {-1, -1};  // by stay
  std::vector<int> leased;        // tags of the leases that live

  std::pair<int, int> tags_of(TagLease::Stay stay) const {
    return stay == TagLease::Stay::long_ ? std::pair(tag_limit / 4, tag_limit / 2)
                                         : std::pair(tag_limit - tag_limit / 4, tag_limit);
  }

  void release() noexcept {
    if (comm != MPI_COMM_NULL && mpi_is_active()) {
      MPI_Comm_free(&comm);
      if (stand_in != MPI_COMM_NULL) MPI_Comm_free(&stand_in);
    }
    comm = MPI_COMM_NULL;
    if (user == stand_in) user = MPI_COMM_NULL;
    stand_in = MPI_COMM_NULL;
  }

  ~State();
};

namespace {

using StatePtr = std::shared_ptr<void>;

/// Ranks that were asked which of them share a node, and those on this rank's.
struct NodeGroup {
  MPI_Group all, here;
};

/// Every live duplicate, so that MPI_Finalize can release those whose owners outlive it.
struct Registry {
  std::mutex mutex;
  std::vector<std::pair<void*, void (*)(void*)>> live;
  int keyval = MPI_KEYVAL_INVALID;        // on users' communicators
  int finalize_key = MPI_KEYVAL_INVALID;  // on MPI_COMM_SELF
  std::vector<NodeGroup> nodes;           // found so far
};

Registry& registry() {
  static Registry r;
  return r;
}

/// What a user's communicator carries: our duplicate's state, which learns here that the communicator is gone.
struct Cached {
  StatePtr state;
  MPI_Comm *user, *stand_in;
  const MPI_Comm* own;
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

int delete_cached(MPI_Comm comm, int, void* value, void*) {
  auto* cached = static_cast<Cached*>(value);
  *cached->user = MPI_COMM_NULL;
  if (*cached->own != MPI_COMM_NULL && cached->state.use_count() > 1)  // somebody may still report an error
    *cached->user = *cached->stand_in = alone_with_handler_of(comm);
  delete cached;
  return MPI_SUCCESS;
}

/// MPI deletes the attributes of MPI_COMM_SELF first of all in MPI_Finalize, while every call still works.
int release_all(MPI_Comm, int, void*, void*) {
  Registry& r = registry();
  for (NodeGroup& n : std::exchange(r.nodes, {})) {
    MPI_Group_free(&n.all);
    MPI_Group_free(&n.here);
  }
  for (;;) {  // one at a time: freeing a communicator may end other states, which leave the list then
    std::pair<void*, void (*)(void*)> last;
    {
      const std::lock_guard lock(r.mutex);
      if (r.live.empty()) break;
      last = r.live.back();
      r.live.pop_back();
    }
    last.second(last.first);
  }
  return MPI_SUCCESS;
}

void make_keys(Registry& r) {
  if (r.keyval != MPI_KEYVAL_INVALID) return;
  mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_cached, &r.keyval, nullptr),
            "MPI_Comm_create_keyval");
  mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release_all, &r.finalize_key, nullptr),
            "MPI_Comm_create_keyval");
  mpi_check(MPI_Comm_set_attr(MPI_COMM_SELF, r.finalize_key, nullptr), "MPI_Comm_set_attr");
}

/// How many of the first `size` ranks of `group` are in `other`.
int count_common(MPI_Group group, int size, MPI_Group other) {
  std::vector<int> ranks(static_cast<std::size_t>(size)), places(ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  mpi_check(MPI_Group_translate_ranks(group, size, ranks.data(), other, places.data()),
            "MPI_Group_translate_ranks");
  return static_cast<int>(std::count_if(places.begin(), places.end(), [](int p) { return p != MPI_UNDEFINED; }));
}

/// Asks MPI when no communicator with all these ranks was seen before; then all of them have seen it. Collective.
int count_ranks_on_node(MPI_Comm comm, int size) {
  std::vector<NodeGroup>& known = registry().nodes;
  MPI_Group all = MPI_GROUP_NULL;
  mpi_check(MPI_Comm_group(comm, &all), "MPI_Comm_group");
  for (const NodeGroup& n : known)
    if (count_common(all, size, n.all) == size) {
      const int here = count_common(all, size, n.here);
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

/// `count` tags of the range [first, last), beginning again at its start when it is used up.
int take_from(int& next, int first, int last, int count) {
  if (count > last - first)
    throw UsageError("an object needs " + std::to_string(count) + " message tags, MPI offers " +
                     std::to_string(last - first));
  if (next < first || next > last - count) next = first;
  next += count;
  return next - count;
}

}  // namespace

Communicator::State::~State() {
  Registry& r = registry();
  {
    const std::lock_guard lock(r.mutex);
    std::erase_if(r.live, [this](const auto& entry) { return entry.first == this; });
  }
  release();
}

std::shared_ptr<Communicator::State> Communicator::make_state(MPI_Comm user) {
  auto state = std::make_shared<State>();
  constexpr int some_spins = 20;  // the number of ranks on this node is not known yet
  state->comm = duplicate(user, some_spins);
  mpi_check(MPI_Comm_set_errhandler(state->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpi_check(MPI_Comm_rank(state->comm, &state->rank), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(state->comm, &state->size), "MPI_Comm_size");
  state->ranks_on_node = state->size > 1 ? count_ranks_on_node(state->comm, state->size) : 1;
  state->cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  int* limit = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(state->comm, MPI_TAG_UB, static_cast<void*>(&limit), &found), "MPI_Comm_get_attr");
  if (found) state->tag_limit = *limit;
  const std::lock_guard lock(registry().mutex);
  registry().live.emplace_back(state.get(), [](void* s) { static_cast<State*>(s)->release(); });
  return state;
}

Communicator Communicator::of(MPI_Comm user) {
  require_mpi();
  if (user == MPI_COMM_NULL)
    throw UsageError("the communicator is MPI_COMM_NULL: pass one that this rank belongs to");
  Registry& r = registry();
  make_keys(r);
  {  // one of our own duplicates needs no other
    const std::lock_guard lock(r.mutex);
    for (const auto& entry : r.live)
      if (auto* own = static_cast<State*>(entry.first); own->comm == user)
        return Communicator(own->shared_from_this());
  }
  void* value = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(user, r.keyval, static_cast<void*>(&value), &found), "MPI_Comm_get_attr");
  if (found) {
    auto state = std::static_pointer_cast<State>(static_cast<Cached*>(value)->state);
    if (state->comm != MPI_COMM_NULL) return Communicator(std::move(state));
  }
  int inter = 0;
  mpi_check(MPI_Comm_test_inter(user, &inter), "MPI_Comm_test_inter");
  if (inter) throw UsageError("the communicator is an inter-communicator: pass an intra-communicator");
  auto state = make_state(user);
  state->user = user;
  mpi_check(MPI_Comm_set_attr(user, r.keyval, new Cached{state, &state->user, &state->stand_in, &state->comm}),
            "MPI_Comm_set_attr");
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
int Communicator::cores_on_node() const {
  return state_->cores;
}
int Communicator::spins() const {
  return oversubscribed() ? 20 : 2000;
}

int Communicator::take_tags(int count) const {
  // A quarter of the tags each for the messages of objects, for leases that stay, for single messages, and for
  // leases that end soon: all come round in ranges of their own.
  return take_from(state_->next_tag, 0, state_->tag_limit / 4, count);
}

int Communicator::take_passing_tags(int count) const {
  return take_from(state_->next_passing_tag, state_->tag_limit / 2, state_->tag_limit / 4 * 3, count);
}

TagLease::TagLease(const Communicator& comm, Stay stay) {
  Communicator::State& state = *comm.state_;
  const auto [low, high] = state.tags_of(stay);
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
  auto& live = state_->leased;
  live.erase(std::find(live.begin(), live.end(), tag_));
}

void Communicator::wait(MPI_Request& request, const char* place) const {
  wait(std::span(&request, 1), place);
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
  constexpr std::int64_t chunk = std::int64_t{1} << 30;
  for (std::int64_t at = 0; at < bytes; at += chunk) {
    MPI_Request request = MPI_REQUEST_NULL;
    mpi_check(MPI_Ibcast(static_cast<char*>(data) + at, static_cast<int>(std::min(chunk, bytes - at)), MPI_BYTE,
                         root, get(), &request),
              "MPI_Ibcast", get());
    wait(request, "broadcast");
  }
}

void Communicator::broadcast(std::string& text, int root) const {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  broadcast(&length, sizeof length, root);
  text.resize(static_cast<std::size_t>(length));
  broadcast(text.data(), length, root);
}

void Communicator::allreduce(void* in_out, int count, MPI_Datatype type, MPI_Op op) const {
  if (size() == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, in_out, count, type, op, get(), &request), "MPI_Iallreduce", get());
  wait(request, "allreduce");
}

std::uint64_t Communicator::sum(std::uint64_t value) const {
  allreduce(&value, 1, MPI_UINT64_T, MPI_SUM);
  return value;
}

std::int64_t Communicator::min(std::int64_t value) const {
  allreduce(&value, 1, MPI_INT64_T, MPI_MIN);
  return value;
}

std::int64_t Communicator::max(std::int64_t value) const {
  allreduce(&value, 1, MPI_INT64_T, MPI_MAX);
  return value;
}

}  // namespace isohalo
