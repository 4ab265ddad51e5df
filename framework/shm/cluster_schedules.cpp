/// What the ranks of several compute nodes do in each collective. Source: Li, Hoefler, Snir 2013,
/// sections 2.3, 2.5.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "datatypes/error.hpp"
#include "framework/shm/cluster_collectives.hpp"
#include "framework/shm/cluster_program.hpp"

namespace isohalo {

namespace {

constexpr std::size_t kByParts = std::size_t{64} << 10;  ///< longer vectors are cut, one part for each node
constexpr std::size_t kPiece = std::size_t{256} << 10;   ///< of a broadcast, on its way while the next is sent

}  // namespace

int ClusterCollectives::speaker(int node, int root) const {
  if (root >= 0 && node_of_[static_cast<std::size_t>(root)] == node) return root;
  return leaders_[static_cast<std::size_t>(node)];
}

void ClusterCollectives::require_root(const Collective& c) const {
  if (c.has_root() && (c.root < 0 || c.root >= ranks()))
    throw UsageError("the root of a collective is " + std::to_string(c.root) + ", the communicator has " +
                     std::to_string(ranks()) + " ranks");
}

void ClusterCollectives::require_order(const Combine& combine) const {
  if (!combine.commutes() && !in_rank_order_)
    throw UsageError(
        "an operation that does not commute, and ranks of a compute node that are not consecutive: reorder the "
        "communicator, or use MPI's reduction");
}

void ClusterCollectives::on_node(Program& p, const Collective& c) {
  p.call(node_->call(c));
}

void ClusterCollectives::plan(Program& p, const Collective& c) {
  using Kind = Collective::Kind;
  if (nodes() == 1) return on_node(p, c);
  switch (c.kind) {
    case Kind::barrier:
      return barrier(p);
    case Kind::broadcast:
      return broadcast(p, c);
    case Kind::allreduce:
      return allreduce(p, c);
    case Kind::reduce:
      return reduce(p, c);
    case Kind::gather:
      return gather(p, c);
    case Kind::scatter:
      return scatter(p, c);
    case Kind::allgather:
      return allgather(p, c);
  }
}

void ClusterCollectives::barrier(Program& p) {
  on_node(p, Collective::barrier());
  if (speaks(-1))
    for (int far = 1; far < nodes(); far *= 2)
      p.exchange(nullptr, nullptr, 0, speaker((my_node_ + far) % nodes(), -1),
                 speaker((my_node_ - far + nodes()) % nodes(), -1));
  on_node(p, Collective::barrier());
}

/// From the root's node along a binomial tree, piece by piece, each spread on the node as it comes.
void ClusterCollectives::broadcast(Program& p, const Collective& c) {
  const int root = c.root, root_node = node_of_[static_cast<std::size_t>(root)];
  const int place = (my_node_ - root_node + nodes()) % nodes();
  const auto at_place = [&](int k) { return speaker((root_node + k) % nodes(), root); };
  const int speaks_here = place_of_[static_cast<std::size_t>(speaker(my_node_, root))];
  for (std::size_t at = 0; at < c.count; at += kPiece) {
    const std::size_t n = std::min(kPiece, c.count - at);
    std::byte* const data = c.to + at;
    if (speaks(root)) {
      // Place k gets it from k without its lowest bit, and serves k plus each lower bit.
      const int lowest =
          place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(nodes()))) : place & -place;
      if (place > 0) {
        p.receive(data, n, at_place(place - lowest));
        p.await_receives();
      }
      for (int bit = lowest / 2; bit > 0; bit /= 2)
        if (place + bit < nodes()) p.send(data, n, at_place(place + bit));
    }
    on_node(p, Collective::broadcast(data, n, speaks_here));
  }
  p.await_messages();
}

void ClusterCollectives::allreduce(Program& p, const Collective& c) {
  require_order(*c.combine);
  on_node(p, Collective::reduce(c.from, c.to, c.count, *c.combine, 0));
  if (speaks(-1)) over_nodes(p, c.to, c);
  on_node(p, Collective::broadcast(c.to, c.count * c.combine->element_bytes(), 0));
}

void ClusterCollectives::reduce(Program& p, const Collective& c) {
  require_order(*c.combine);
  const bool speaks_here = speaks(c.root);
  std::byte* const here = me_ == c.root ? c.to : p.room(speaks_here ? c.count * c.combine->element_bytes() : 0);
  const int to = place_of_[static_cast<std::size_t>(speaker(my_node_, c.root))];
  on_node(p, Collective::reduce(c.from, here, c.count, *c.combine, to));
  if (speaks_here) over_nodes(p, here, c);
}

/// What the nodes' speakers have at `data`.
void ClusterCollectives::over_nodes(Program& p, std::byte* data, const Collective& c) {
  const std::size_t bytes = c.count * c.combine->element_bytes();
  if (bytes > 0) bytes <= kByParts ? by_doubling(p, data, c) : by_parts(p, data, c);
}

/// Dissemination with excess nodes (section 2.3), which joins in the order of CombiningTree.
void ClusterCollectives::by_doubling(Program& p, std::byte* data, const Collective& c) {
  const Combine& combine = *c.combine;
  const int root = c.root;
  const std::size_t count = c.count, bytes = count * combine.element_bytes();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(nodes()))), excess = nodes() - power;
  const auto speaker_at = [&](int place) { return speaker(place < excess ? 2 * place : place + excess, root); };
  const bool paired = my_node_ < 2 * excess, left_out = paired && my_node_ % 2 == 1;
  if (left_out) {
    p.exchange(data, nullptr, bytes, speaker(my_node_ - 1, root), -1);
    p.exchange(nullptr, data, bytes, -1, speaker(my_node_ - 1, root));
    return;
  }
  std::byte* const there = p.room(bytes);
  const auto join = [&p, data, there, count, &combine](bool theirs_first) {
    p.work([data, there, count, &combine, theirs_first] {
      theirs_first ? combine(there, data, data, count) : combine(data, there, data, count);
    });
  };
  if (paired) {
    p.exchange(nullptr, there, bytes, -1, speaker(my_node_ + 1, root));
    join(false);
  }
  const int place = paired ? my_node_ / 2 : my_node_ - excess;
  for (int bit = 1; bit < power; bit *= 2) {
    const int other = speaker_at(place ^ bit);
    p.exchange(data, there, bytes, other, other);
    join((place & bit) != 0);
  }
  if (paired) p.exchange(data, nullptr, bytes, speaker(my_node_ + 1, root), -1);
}

template <class Visit>
void ClusterCollectives::each_other_node(const Visit& visit) const {
  for (int node = 0; node < nodes(); ++node)
    if (node != my_node_) visit(node);
}

/// Each node joins one part of all, and passes it to all (or to the root).
void ClusterCollectives::by_parts(Program& p, std::byte* data, const Collective& c) {
  const Combine& combine = *c.combine;
  const int root = c.root;
  const std::size_t count = c.count, size = combine.element_bytes();
  const std::size_t part = (count + leaders_.size() - 1) / leaders_.size();
  const auto first = [&](int node) { return std::min(count, static_cast<std::size_t>(node) * part); };
  const auto bytes = [&](int node) { return (first(node + 1) - first(node)) * size; };
  const auto at = [&](int node) { return data + first(node) * size; };
  const std::size_t mine = first(my_node_ + 1) - first(my_node_);
  std::byte* const there = p.room((leaders_.size() + 1) * part * size);
  std::byte* const joined = there + leaders_.size() * part * size;
  std::vector<const std::byte*> vectors;
  for (int node = 0; node < nodes(); ++node)
    vectors.push_back(node == my_node_ ? at(node) : there + static_cast<std::size_t>(node) * part * size);
  each_other_node([&](int node) {
    p.receive(there + static_cast<std::size_t>(node) * part * size, mine * size, speaker(node, root));
    p.send(at(node), bytes(node), speaker(node, root));
  });
  p.await_messages();
  p.work([vectors, joined, mine, to = at(my_node_), n = nodes(), &combine] {
    const CombiningTree tree{Hierarchy(n)};
    if (mine > 0) combine.join(tree.joins(tree.root(), tree.leaves(tree.root())), vectors, joined, mine);
    std::memcpy(to, joined, mine * combine.element_bytes());
  });
  const int root_node = root < 0 ? -1 : node_of_[static_cast<std::size_t>(root)];
  each_other_node([&](int node) {
    if (root < 0 || root_node == my_node_) p.receive(at(node), bytes(node), speaker(node, root));
    if (root < 0 || root_node == node) p.send(joined, mine * size, speaker(node, root));
  });
  p.await_messages();
}

// --- blocks of each rank: those of a compute node lie in a row, which is where they belong if nodes are runs of
// ranks ---

std::size_t ClusterCollectives::slots(int node) const {
  const auto k = static_cast<std::size_t>(node);
  return first_slot_[k + 1] - first_slot_[k];
}

/// Room for the blocks of all ranks, by nodes: `all` itself where that is the order of ranks.
std::byte* ClusterCollectives::by_nodes(Program& p, std::byte* all, std::size_t bytes) {
  return in_rank_order_ ? all : p.room(static_cast<std::size_t>(ranks()) * bytes);
}

/// Between that order and the order of ranks.
void ClusterCollectives::reorder(std::byte* by_ranks, std::byte* by_nodes, std::size_t bytes, bool to_ranks) const {
  if (in_rank_order_ || bytes == 0) return;
  for (std::size_t r = 0; r < node_of_.size(); ++r) {
    const std::size_t slot =
        first_slot_[static_cast<std::size_t>(node_of_[r])] + static_cast<std::size_t>(place_of_[r]);
    std::byte *const here = by_ranks + r * bytes, *const there = by_nodes + slot * bytes;
    std::memcpy(to_ranks ? here : there, to_ranks ? there : here, bytes);
  }
}

void ClusterCollectives::gather(Program& p, const Collective& c) {
  const std::byte* mine = c.from;
  std::byte* const all = c.to;
  const std::size_t bytes = c.count;
  const int root = c.root;
  const int place = place_of_[static_cast<std::size_t>(speaker(my_node_, root))];
  if (me_ == root) {
    std::byte* const whole = by_nodes(p, all, bytes);
    each_other_node([&](int node) {
      p.receive(whole + first_slot_[static_cast<std::size_t>(node)] * bytes, slots(node) * bytes,
                speaker(node, root));
    });
    if (!mine && !in_rank_order_) mine = all + static_cast<std::size_t>(root) * bytes;
    on_node(
        p, Collective::gather(mine, bytes, whole + first_slot_[static_cast<std::size_t>(my_node_)] * bytes, place));
    p.await_messages();
    p.work([this, all, whole, bytes] { reorder(all, whole, bytes, true); });
  } else if (speaks(root)) {
    std::byte* const of_node = p.room(slots(my_node_) * bytes);
    on_node(p, Collective::gather(mine, bytes, of_node, place));
    p.exchange(of_node, nullptr, slots(my_node_) * bytes, root, -1);
  } else {
    on_node(p, Collective::gather(mine, bytes, nullptr, place));
  }
}

void ClusterCollectives::scatter(Program& p, const Collective& c) {
  const std::size_t bytes = c.count;
  const int root = c.root;
  const int place = place_of_[static_cast<std::size_t>(speaker(my_node_, root))];
  if (me_ == root) {
    std::byte* const from = const_cast<std::byte*>(c.from);  // only read
    std::byte* const whole = by_nodes(p, from, bytes);
    p.work([this, from, whole, bytes] { reorder(from, whole, bytes, false); });
    each_other_node([&](int node) {
      p.send(whole + first_slot_[static_cast<std::size_t>(node)] * bytes, slots(node) * bytes, speaker(node, root));
    });
    on_node(p, Collective::scatter(whole + first_slot_[static_cast<std::size_t>(my_node_)] * bytes, bytes, c.to,
                                   place));
    p.await_messages();
  } else if (speaks(root)) {
    std::byte* const of_node = p.room(slots(my_node_) * bytes);
    p.exchange(nullptr, of_node, slots(my_node_) * bytes, -1, root);
    on_node(p, Collective::scatter(of_node, bytes, c.to, place));
  } else {
    on_node(p, Collective::scatter(nullptr, bytes, c.to, place));
  }
}

/// To the leaders, among them, and to all.
void ClusterCollectives::allgather(Program& p, const Collective& c) {
  std::byte* const all = c.to;
  const std::size_t bytes = c.count;
  std::byte* const whole = by_nodes(p, all, bytes);
  std::byte* const of_node = whole + first_slot_[static_cast<std::size_t>(my_node_)] * bytes;
  if (speaks(-1)) {
    each_other_node([&](int node) {
      p.receive(whole + first_slot_[static_cast<std::size_t>(node)] * bytes, slots(node) * bytes,
                speaker(node, -1));
    });
    // Its own block is the first.
    on_node(p, Collective::gather(c.from == of_node ? nullptr : c.from, bytes, of_node, 0));
    each_other_node([&](int node) { p.send(of_node, slots(my_node_) * bytes, speaker(node, -1)); });
    p.await_messages();
  } else {
    on_node(p, Collective::gather(c.from, bytes, nullptr, 0));
  }
  on_node(p, Collective::broadcast(whole, static_cast<std::size_t>(ranks()) * bytes, 0));
  p.work([this, all, whole, bytes] { reorder(all, whole, bytes, true); });
}

}  // namespace isohalo
