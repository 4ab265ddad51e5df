#include "framework/shm/cluster_collectives.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

constexpr std::size_t kByParts = std::size_t{64} << 10;  ///< longer vectors are cut, one part for each node
constexpr std::size_t kPiece = std::size_t{256} << 10;   ///< of a broadcast, on its way while the next is sent

}  // namespace

std::unique_ptr<ClusterCollectives> ClusterCollectives::make(MPI_Comm comm, const NodeCollectivesOptions& options) {
  std::unique_ptr<ClusterCollectives> c(new ClusterCollectives);
  c->spins_ = options.spins;
  mpi_check(MPI_Comm_dup(comm, &c->comm_), "MPI_Comm_dup");
  mpi_check(MPI_Comm_set_errhandler(c->comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  int ranks = 1;
  mpi_check(MPI_Comm_rank(comm, &c->me_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
  mpi_check(MPI_Comm_split_type(c->comm_, MPI_COMM_TYPE_SHARED, c->me_, MPI_INFO_NULL, &c->node_comm_),
            "MPI_Comm_split_type");
  c->node_ = NodeCollectives::make(c->node_comm_, options);
  int lowest = c->me_, place = 0;
  mpi_check(MPI_Comm_rank(c->node_comm_, &place), "MPI_Comm_rank");
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Ibcast(&lowest, 1, MPI_INT, 0, c->node_comm_, &request), "MPI_Ibcast");
  wait_all(std::span(&request, 1), c->spins_, "compute nodes");
  const int mine[3] = {lowest, place, c->node_ != nullptr};
  std::vector<int> all(3 * static_cast<std::size_t>(ranks));
  mpi_check(MPI_Iallgather(mine, 3, MPI_INT, all.data(), 3, MPI_INT, c->comm_, &request), "MPI_Iallgather");
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
  c->my_node_ = c->node_of_[static_cast<std::size_t>(c->me_)];
  c->first_slot_.assign(static_cast<std::size_t>(c->nodes()) + 1, 0);
  for (const int node : c->node_of_) ++c->first_slot_[static_cast<std::size_t>(node) + 1];
  std::partial_sum(c->first_slot_.begin(), c->first_slot_.end(), c->first_slot_.begin());
  return c;
}

std::unique_ptr<ClusterCollectives> ClusterCollectives::make_on_one_node(MPI_Comm comm,
                                                                         const NodeCollectivesOptions& options) {
  std::unique_ptr<ClusterCollectives> c(new ClusterCollectives);
  c->node_ = NodeCollectives::make(comm, options);
  if (!c->node_) return nullptr;
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

int ClusterCollectives::speaker(int node, int root) const {
  if (root >= 0 && node_of_[static_cast<std::size_t>(root)] == node) return root;
  return leaders_[static_cast<std::size_t>(node)];
}

/// Ranks below 0 are nobody.
void ClusterCollectives::exchange(const void* out, void* in, std::size_t bytes, int to, int from) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const auto n = static_cast<MPI_Count>(bytes);
  if (from >= 0) mpi_check(mpi::irecv(in, n, MPI_BYTE, from, 0, comm_, &requests[0]), "MPI_Irecv_c");
  if (to >= 0) mpi_check(mpi::isend(out, n, MPI_BYTE, to, 0, comm_, &requests[1]), "MPI_Isend_c");
  wait_all(requests, spins_, "another compute node");
}

void ClusterCollectives::barrier() {
  node_->barrier();
  if (nodes() == 1) return;
  if (speaks(-1))
    for (int far = 1; far < nodes(); far *= 2)
      exchange(nullptr, nullptr, 0, speaker((my_node_ + far) % nodes(), -1),
               speaker((my_node_ - far + nodes()) % nodes(), -1));
  node_->barrier();
}

/// From the root's node along a binomial tree, piece by piece, each spread on the node as it comes.
void ClusterCollectives::broadcast(std::byte* data, std::size_t bytes, int root) {
  if (nodes() == 1) return node_->broadcast(data, bytes, root);
  const int root_node = node_of_[static_cast<std::size_t>(root)];
  const int place = (my_node_ - root_node + nodes()) % nodes();
  const auto at_place = [&](int k) { return speaker((root_node + k) % nodes(), root); };
  std::vector<MPI_Request> sends;
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t n = std::min(kPiece, bytes - at);
    if (speaks(root)) {
      // Place k gets it from k without its lowest bit, and serves k plus each lower bit.
      const int lowest =
          place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(nodes()))) : place & -place;
      if (place > 0) exchange(nullptr, data + at, n, -1, at_place(place - lowest));
      for (int bit = lowest / 2; bit > 0; bit /= 2)
        if (place + bit < nodes())
          mpi_check(mpi::isend(data + at, static_cast<MPI_Count>(n), MPI_BYTE, at_place(place + bit), 0, comm_,
                               &sends.emplace_back()),
                    "MPI_Isend_c");
    }
    const int speaks_here = speaker(my_node_, root);
    node_->broadcast(data + at, n, place_of_[static_cast<std::size_t>(speaks_here)]);
  }
  wait_all(sends, spins_, "another compute node");
}

void ClusterCollectives::allreduce(const std::byte* mine, std::byte* result, std::size_t count,
                                   const detail::Combine& combine) {
  if (nodes() == 1) return node_->allreduce(mine, result, count, combine);
  node_->reduce(mine, result, count, combine, 0);
  if (speaks(-1)) over_nodes(result, count, combine, -1);
  node_->broadcast(result, count * combine.element_bytes(), 0);
}

void ClusterCollectives::reduce(const std::byte* mine, std::byte* result, std::size_t count,
                                const detail::Combine& combine, int root) {
  if (nodes() == 1) return node_->reduce(mine, result, count, combine, root);
  std::byte* here = result;
  if (me_ != root) {
    sum_.resize(speaks(root) ? count * combine.element_bytes() : 0);
    here = sum_.data();
  }
  node_->reduce(mine, here, count, combine, place_of_[static_cast<std::size_t>(speaker(my_node_, root))]);
  if (speaks(root)) over_nodes(here, count, combine, root);
}

void ClusterCollectives::over_nodes(std::byte* data, std::size_t count, const detail::Combine& combine, int root) {
  if (count == 0) return;
  if (count * combine.element_bytes() <= kByParts)
    by_doubling(data, count, combine, root);
  else
    by_parts(data, count, combine, root);
}

/// Dissemination with excess nodes (section 2.3), which joins in the order of CombiningTree.
void ClusterCollectives::by_doubling(std::byte* data, std::size_t count, const detail::Combine& combine, int root) {
  const std::size_t bytes = count * combine.element_bytes();
  there_.resize(bytes);
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(nodes()))), excess = nodes() - power;
  const auto speaker_at = [&](int place) { return speaker(place < excess ? 2 * place : place + excess, root); };
  const bool paired = my_node_ < 2 * excess, left_out = paired && my_node_ % 2 == 1;
  if (left_out) {
    exchange(data, data, bytes, speaker(my_node_ - 1, root), -1);
    exchange(nullptr, data, bytes, -1, speaker(my_node_ - 1, root));
    return;
  }
  if (paired) {
    exchange(nullptr, there_.data(), bytes, -1, speaker(my_node_ + 1, root));
    combine(data, there_.data(), data, count);
  }
  const int place = paired ? my_node_ / 2 : my_node_ - excess;
  for (int bit = 1; bit < power; bit *= 2) {
    const int other = speaker_at(place ^ bit);
    exchange(data, there_.data(), bytes, other, other);
    if (place & bit)
      combine(there_.data(), data, data, count);
    else
      combine(data, there_.data(), data, count);
  }
  if (paired) exchange(data, nullptr, bytes, speaker(my_node_ + 1, root), -1);
}

/// Each node joins one part of all, and passes it to all (or to the root).
void ClusterCollectives::by_parts(std::byte* data, std::size_t count, const detail::Combine& combine, int root) {
  const std::size_t size = combine.element_bytes(), part = (count + leaders_.size() - 1) / leaders_.size();
  const auto first = [&](int node) { return std::min(count, static_cast<std::size_t>(node) * part); };
  const auto length = [&](int node) { return first(node + 1) - first(node); };
  const std::size_t mine = length(my_node_);
  there_.resize((leaders_.size() + 1) * part * size);
  std::vector<MPI_Request> requests;
  const auto receive = [&](std::byte* to, std::size_t elements, int node) {
    mpi_check(mpi::irecv(to, static_cast<MPI_Count>(elements * size), MPI_BYTE, speaker(node, root), 0, comm_,
                         &requests.emplace_back()),
              "MPI_Irecv_c");
  };
  const auto send = [&](const std::byte* from, std::size_t elements, int node) {
    mpi_check(mpi::isend(from, static_cast<MPI_Count>(elements * size), MPI_BYTE, speaker(node, root), 0, comm_,
                         &requests.emplace_back()),
              "MPI_Isend_c");
  };
  std::vector<const std::byte*> vectors;
  for (int node = 0; node < nodes(); ++node) {
    std::byte* const place = there_.data() + static_cast<std::size_t>(node) * part * size;
    vectors.push_back(node == my_node_ ? data + first(node) * size : place);
    if (node == my_node_) continue;
    receive(place, mine, node);
    send(data + first(node) * size, length(node), node);
  }
  wait_all(requests, spins_, "another compute node");
  requests.clear();
  const CombiningTree tree{Hierarchy(nodes())};
  std::byte* const joined = there_.data() + leaders_.size() * part * size;
  if (mine > 0) combine.join(tree.joins(tree.root(), tree.leaves(tree.root())), vectors, joined, mine);
  std::memcpy(data + first(my_node_) * size, joined, mine * size);
  const int root_node = root < 0 ? -1 : node_of_[static_cast<std::size_t>(root)];
  for (int node = 0; node < nodes(); ++node) {
    if (node == my_node_) continue;
    if (root < 0 || root_node == my_node_) receive(data + first(node) * size, length(node), node);
    if (root < 0 || root_node == node) send(joined, mine, node);
  }
  wait_all(requests, spins_, "another compute node");
}

// --- blocks of each rank: those of a compute node lie in a row, which is where they belong if nodes are runs of
// ranks ---

std::size_t ClusterCollectives::slots(int node) const {
  const auto k = static_cast<std::size_t>(node);
  return first_slot_[k + 1] - first_slot_[k];
}

/// Room for the blocks of all ranks, by nodes: `all` itself where that is the order of ranks.
std::byte* ClusterCollectives::by_nodes(std::byte* all, std::size_t bytes) {
  if (in_rank_order_) return all;
  there_.resize(static_cast<std::size_t>(ranks()) * bytes);
  return there_.data();
}

/// Between that order and the order of ranks.
void ClusterCollectives::reorder(std::byte* all, std::size_t bytes, bool to_ranks) {
  if (in_rank_order_ || bytes == 0) return;
  for (std::size_t r = 0; r < node_of_.size(); ++r) {
    const std::size_t slot =
        first_slot_[static_cast<std::size_t>(node_of_[r])] + static_cast<std::size_t>(place_of_[r]);
    std::byte *const here = all + r * bytes, *const there = there_.data() + slot * bytes;
    std::memcpy(to_ranks ? here : there, to_ranks ? there : here, bytes);
  }
}

/// The blocks of each other node, in `whole`, from or to its speaker.
std::vector<MPI_Request> ClusterCollectives::with_other_nodes(std::byte* whole, std::size_t bytes, int root,
                                                              bool receives) {
  std::vector<MPI_Request> requests;
  for (int node = 0; node < nodes(); ++node) {
    if (node == my_node_) continue;
    std::byte* const at = whole + first_slot_[static_cast<std::size_t>(node)] * bytes;
    const auto n = static_cast<MPI_Count>(slots(node) * bytes);
    MPI_Request* const request = &requests.emplace_back();
    if (receives)
      mpi_check(mpi::irecv(at, n, MPI_BYTE, speaker(node, root), 0, comm_, request), "MPI_Irecv_c");
    else
      mpi_check(mpi::isend(at, n, MPI_BYTE, speaker(node, root), 0, comm_, request), "MPI_Isend_c");
  }
  return requests;
}

void ClusterCollectives::gather(const std::byte* mine, std::size_t bytes, std::byte* all, int root) {
  if (nodes() == 1) return node_->gather(mine, bytes, all, root);
  const int place = place_of_[static_cast<std::size_t>(speaker(my_node_, root))];
  const std::size_t first = first_slot_[static_cast<std::size_t>(my_node_)];
  if (me_ == root) {
    std::byte* const whole = by_nodes(all, bytes);
    auto requests = with_other_nodes(whole, bytes, root, true);
    if (!mine && !in_rank_order_) mine = all + static_cast<std::size_t>(root) * bytes;
    node_->gather(mine, bytes, whole + first * bytes, place);
    wait_all(requests, spins_, "another compute node");
    reorder(all, bytes, true);
  } else if (speaks(root)) {
    there_.resize(slots(my_node_) * bytes);
    node_->gather(mine, bytes, there_.data(), place);
    exchange(there_.data(), nullptr, there_.size(), root, -1);
  } else {
    node_->gather(mine, bytes, nullptr, place);
  }
}

void ClusterCollectives::scatter(const std::byte* all, std::size_t bytes, std::byte* mine, int root) {
  if (nodes() == 1) return node_->scatter(all, bytes, mine, root);
  const int place = place_of_[static_cast<std::size_t>(speaker(my_node_, root))];
  if (me_ == root) {
    std::byte* const from = const_cast<std::byte*>(all);  // only read
    std::byte* const whole = by_nodes(from, bytes);
    reorder(from, bytes, false);
    auto requests = with_other_nodes(whole, bytes, root, false);
    node_->scatter(whole + first_slot_[static_cast<std::size_t>(my_node_)] * bytes, bytes, mine, place);
    wait_all(requests, spins_, "another compute node");
  } else if (speaks(root)) {
    there_.resize(slots(my_node_) * bytes);
    exchange(nullptr, there_.data(), there_.size(), -1, root);
    node_->scatter(there_.data(), bytes, mine, place);
  } else {
    node_->scatter(nullptr, bytes, mine, place);
  }
}

/// To the leaders, among them, and to all.
void ClusterCollectives::allgather(const std::byte* mine, std::size_t bytes, std::byte* all) {
  if (nodes() == 1) return node_->allgather(mine, bytes, all);
  std::byte* const whole = by_nodes(all, bytes);
  std::byte* const of_node = whole + first_slot_[static_cast<std::size_t>(my_node_)] * bytes;
  if (speaks(-1)) {
    auto receives = with_other_nodes(whole, bytes, -1, true);
    node_->gather(mine == of_node ? nullptr : mine, bytes, of_node, 0);  // its own block is the first
    std::vector<MPI_Request> sends;
    for (int node = 0; node < nodes(); ++node)
      if (node != my_node_)
        mpi_check(mpi::isend(of_node, static_cast<MPI_Count>(slots(my_node_) * bytes), MPI_BYTE, speaker(node, -1),
                             0, comm_, &sends.emplace_back()),
                  "MPI_Isend_c");
    wait_all(receives, spins_, "another compute node");
    wait_all(sends, spins_, "another compute node");
  } else {
    node_->gather(mine, bytes, nullptr, 0);
  }
  node_->broadcast(whole, static_cast<std::size_t>(ranks()) * bytes, 0);
  reorder(all, bytes, true);
}

}  // namespace isohalo
