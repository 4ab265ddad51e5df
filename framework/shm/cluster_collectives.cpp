#include "framework/shm/cluster_collectives.hpp"

#include <algorithm>
#include <numeric>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/shm/cluster_program.hpp"

namespace isohalo {

std::unique_ptr<ClusterCollectives> ClusterCollectives::make(MPI_Comm comm, const NodeCollectivesOptions& options) {
  std::unique_ptr<ClusterCollectives> c(new ClusterCollectives);
  c->spins_ = options.spins;
  int ranks = 1;
  mpi_check(MPI_Comm_rank(comm, &c->me_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
  mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, c->me_, MPI_INFO_NULL, &c->node_comm_),
            "MPI_Comm_split_type");
  mpi_check(MPI_Comm_set_errhandler(c->node_comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  c->node_ = NodeCollectives::make(c->node_comm_, options);
  int lowest = c->me_, place = 0;
  mpi_check(MPI_Comm_rank(c->node_comm_, &place), "MPI_Comm_rank");
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Ibcast(&lowest, 1, MPI_INT, 0, c->node_comm_, &request), "MPI_Ibcast");
  wait_all(std::span(&request, 1), c->spins_, "compute nodes");
  const int mine[3] = {lowest, place, c->node_ != nullptr};
  std::vector<int> all(3 * static_cast<std::size_t>(ranks));
  mpi_check(MPI_Iallgather(mine, 3, MPI_INT, all.data(), 3, MPI_INT, comm, &request), "MPI_Iallgather");
  wait_all(std::span(&request, 1), c->spins_, "compute nodes");
  c->in_rank_order_ = true;
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
    const int leader = all[3 * r];
    auto at = std::find(c->leaders_.begin(), c->leaders_.end(), leader);
    if (at == c->leaders_.end()) at = c->leaders_.insert(at, leader);  // ascending: the lowest rank comes first
    c->node_of_.push_back(static_cast<int>(at - c->leaders_.begin()));
    c->place_of_.push_back(all[3 * r + 1]);
    c->in_rank_order_ = c->in_rank_order_ && c->node_of_.back() == c->nodes() - 1;
    if (!all[3 * r + 2]) return nullptr;
  }
  // For messages of its own. Not a duplicate, which would call what copies the user's attributes.
  MPI_Group group = MPI_GROUP_NULL;
  mpi_check(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  const int made = MPI_Comm_create(comm, group, &c->comm_);
  MPI_Group_free(&group);
  mpi_check(made, "MPI_Comm_create");
  mpi_check(MPI_Comm_set_errhandler(c->comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  c->user_ = c->comm_;
  c->spins_ = c->node_->spins();
  c->my_node_ = c->node_of_[static_cast<std::size_t>(c->me_)];
  c->first_slot_.assign(static_cast<std::size_t>(c->nodes()) + 1, 0);
  for (const int node : c->node_of_) ++c->first_slot_[static_cast<std::size_t>(node) + 1];
  std::partial_sum(c->first_slot_.begin(), c->first_slot_.end(), c->first_slot_.begin());
  return c;
}

std::unique_ptr<ClusterCollectives> ClusterCollectives::make_on_one_node(MPI_Comm comm,
                                                                         const NodeCollectivesOptions& options) {
  std::unique_ptr<ClusterCollectives> c(new ClusterCollectives);
  c->spins_ = options.spins;
  mpi_check(MPI_Comm_rank(comm, &c->me_), "MPI_Comm_rank");
  c->node_ = NodeCollectives::make(comm, options);
  if (!c->node_) return nullptr;
  c->user_ = comm;
  c->spins_ = c->node_->spins();
  c->leaders_ = {0};
  c->node_of_.resize(static_cast<std::size_t>(c->node_->ranks()));
  c->in_rank_order_ = true;
  return c;
}

ClusterCollectives::~ClusterCollectives() {
  node_.reset();
  for (MPI_Comm* comm : {&node_comm_, &comm_})
    if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
}

// --- doing it
// -----------------------------------------------------------------------------------------------------

ClusterCollectives::ClusterCollectives() : now_(std::make_unique<Program>()) {}

struct ClusterCollectives::Begun {
  Program program;
  bool active = false;
};

/// Requests, in their order; true when there are none left.
bool ClusterCollectives::proceed() {
  for (; !begun_.empty(); begun_.pop_front()) {
    if (!begun_.front()->program.advance(*node_, comm_, false)) return false;
    begun_.front()->active = false;
  }
  return true;
}

/// Until advance(), which gives the program that keeps it from ending, gives none.
template <class Advance>
void ClusterCollectives::await(const Advance& advance) {
  const Program* last = nullptr;
  std::size_t step = 0;
  Backoff backoff(spins_);
  while (const Program* const p = advance()) {
    if (p != last || p->at() != step) backoff = Backoff(spins_);  // another wait
    last = p, step = p->at();
    p->awaits_node() ? node_->await() : backoff.pause();
  }
}

/// Requests that have begun are ended first.
void ClusterCollectives::run(const Collective& c) {
  require_root(c);
  if (!begun_.empty()) await([&] { return test() ? nullptr : &begun_.front()->program; });
  if (nodes() == 1) return node_->run(c);
  now_->clear();
  plan(*now_, c);
  await([&] { return now_->advance(*node_, comm_, true) ? nullptr : now_.get(); });
}

ClusterCollectives::Request ClusterCollectives::request(const Collective& c) {
  require_root(c);
  auto begun = std::make_unique<Begun>();
  plan(begun->program, c);
  return {*this, std::move(begun)};
}

ClusterCollectives::Request::Request(ClusterCollectives& owner, std::unique_ptr<Begun> begun)
    : owner_(owner), begun_(std::move(begun)) {}
ClusterCollectives::Request::Request(Request&&) noexcept = default;

ClusterCollectives::Request::~Request() noexcept(false) {
  if (!begun_ || !begun_->active) return;
  try {
    wait();
  } catch (...) {  // messages may still come: their memory stays
    std::erase(owner_.begun_, begun_.release());
    throw;
  }
}

void ClusterCollectives::Request::start() {
  if (!begun_ || begun_->active)
    throw UsageError("a request was started that is active, or was moved from: wait for its end");
  begun_->program.restart();
  begun_->active = true;
  owner_.begun_.push_back(begun_.get());
  if (owner_.begun_.size() == 1) activate(&owner_);
  owner_.test();
}

bool ClusterCollectives::Request::test() {
  if (!begun_ || !begun_->active) return true;
  advance_all();  // others', whose end another rank may await
  if (begun_->active) move_messages(owner_.user_);
  return !begun_->active;
}

void ClusterCollectives::Request::wait() {
  if (!begun_ || !begun_->active) return;
  owner_.await([&] {
    owner_.test();
    return begun_->active ? &owner_.begun_.front()->program : nullptr;
  });
}

}  // namespace isohalo
