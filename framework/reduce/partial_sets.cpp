#include "framework/reduce/partial_sets.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/schedule/rank_set.hpp"

namespace isohalo {

namespace {

std::size_t at(std::int32_t n) {
  return static_cast<std::size_t>(n);
}

/// A bit per rank that takes part in a stage: this rank has bit 0, its peers the others, up to 63 at a time.
using Bits = std::uint64_t;
constexpr std::size_t kMostPeers = 63;

/// Which nodes can be formed by which of these ranks, from what each holds. One pass over the tree for all of them.
class CompleteNodes {
 public:
  CompleteNodes(const std::vector<FrontierNode>& nodes, const std::vector<int>& leaf_ranks)
      : nodes_(nodes), leaf_ranks_(leaf_ranks), complete_(nodes.size()) {
    const auto most = std::max_element(leaf_ranks.begin(), leaf_ranks.end());
    holders_.resize(most == leaf_ranks.end() ? 1 : static_cast<std::size_t>(std::max(*most, 0)) + 1);
  }

  /// Bit k: from the contributions in `sets[k]`.
  void find(const std::vector<RankSet>& sets) {
    std::fill(holders_.begin(), holders_.end(), 0);
    for (std::size_t k = 0; k < sets.size(); ++k)
      for (const auto& [first, last] : sets[k].intervals())
        for (std::size_t r = at(first); r < std::min(at(last), holders_.size()); ++r) holders_[r] |= Bits{1} << k;
    for (std::size_t n = nodes_.size(); n-- > 0;)  // children come after their parent
      complete_[n] = leaf_ranks_[n] >= 0   ? holders_[at(leaf_ranks_[n])]
                     : nodes_[n].left >= 0 ? complete_[at(nodes_[n].left)] & complete_[at(nodes_[n].right)]
                                           : 0;
  }
  Bits operator[](std::size_t n) const { return complete_[n]; }

  /// The largest nodes of the sender that the receiver lacks, in tree order.
  std::vector<std::int32_t> message(std::size_t sender, std::size_t receiver) const {
    std::vector<std::int32_t> list, todo{0};
    while (!todo.empty()) {
      const std::int32_t n = todo.back();
      todo.pop_back();
      if (complete_[at(n)] >> receiver & 1) continue;
      if (complete_[at(n)] >> sender & 1) {
        list.push_back(n);
      } else if (nodes_[at(n)].left >= 0) {
        todo.push_back(nodes_[at(n)].right);
        todo.push_back(nodes_[at(n)].left);
      }
    }
    return list;
  }

 private:
  const std::vector<FrontierNode>& nodes_;
  const std::vector<int>& leaf_ranks_;
  std::vector<Bits> holders_;   ///< by rank
  std::vector<Bits> complete_;  ///< by node
};

/// The peers of a stage, each once.
std::vector<int> peers_of(const StageActions& actions) {
  std::vector<int> peers;
  for (const auto* list : {&actions.send, &actions.receive}) peers.insert(peers.end(), list->begin(), list->end());
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace

std::vector<int> leaf_ranks(const std::vector<FrontierNode>& nodes) {
  std::vector<int> ranks;
  for (const FrontierNode& n : nodes) ranks.push_back(n.left < 0 ? n.rank : -1);
  return ranks;
}

void append_partial_sets(ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                         const std::vector<int>& leaf_ranks, const Schedule& schedule, int rank) {
  if (program.empty()) program.emplace_back();
  CompleteNodes complete(nodes, leaf_ranks);
  complete.find({RankSet(rank, rank + 1)});
  for (std::size_t n = nodes.size(); n-- > 0;)  // none in a frontier, whose leaves are maximal
    if (complete[n] && leaf_ranks[n] < 0) program.back().combine.push_back(static_cast<std::int32_t>(n));
  StageActions actions;
  std::vector<char> known;  // nodes that this rank has formed, or that arrive
  for (int s = 0; s < schedule.size(); ++s) {
    schedule.actions(s, rank, actions);
    const std::vector<int> peers = peers_of(actions);
    std::map<int, std::vector<std::int32_t>> to, from;
    known.assign(nodes.size(), 0);
    for (std::size_t first = 0; first == 0 || first < peers.size(); first += kMostPeers) {
      const std::size_t last = std::min(first + kMostPeers, peers.size());
      std::vector<RankSet> sets{contributions(schedule, s, rank)};
      for (std::size_t k = first; k < last; ++k) sets.push_back(contributions(schedule, s, peers[k]));
      complete.find(sets);
      Bits arriving = 1;
      for (std::size_t k = first; k < last; ++k) {
        const int peer = peers[k];
        const auto is_in = [peer](const auto& list) {
          return std::find(list.begin(), list.end(), peer) != list.end();
        };
        if (is_in(actions.send)) to[peer] = complete.message(0, k - first + 1);
        if (!is_in(actions.receive)) continue;
        from[peer] = complete.message(k - first + 1, 0);
        arriving |= Bits{2} << (k - first);
      }
      for (std::size_t n = 0; n < nodes.size(); ++n) known[n] |= (complete[n] & arriving) != 0;
    }
    for (const int peer : actions.send)
      if (auto& list = to[peer]; !list.empty()) program.back().send.push_back({peer, std::move(list)});
    ProgramStep step;
    for (const int peer : actions.receive)
      if (auto& list = from[peer]; !list.empty()) step.receive.push_back({peer, std::move(list)});
    for (std::size_t n = nodes.size(); n-- > 0;) {
      if (known[n] || leaf_ranks[n] >= 0 || nodes[n].left < 0) continue;
      if (!known[at(nodes[n].left)] || !known[at(nodes[n].right)]) continue;
      known[n] = 1;
      step.combine.push_back(static_cast<std::int32_t>(n));
    }
    program.push_back(std::move(step));
  }
}

namespace {

/// Leaves (of the frontier) and inner nodes at and below `n`, children first.
void collect(const std::vector<FrontierNode>& nodes, std::int32_t n, std::vector<std::int32_t>& leaves,
             std::vector<std::int32_t>& inner) {
  if (nodes[at(n)].left < 0) {
    leaves.push_back(n);
    return;
  }
  collect(nodes, nodes[at(n)].left, leaves, inner);
  collect(nodes, nodes[at(n)].right, leaves, inner);
  inner.push_back(n);
}

}  // namespace

std::vector<int> append_resolve(ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                                const std::vector<int>& gather, int rank) {
  std::vector<int> holders(nodes.size(), -1);
  std::map<int, std::vector<std::int32_t>> send, receive;
  ProgramStep step;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (gather[n] < 0) continue;
    holders[n] = gather[n];
    std::vector<std::int32_t> leaves, inner;
    collect(nodes, static_cast<std::int32_t>(n), leaves, inner);
    for (const std::int32_t leaf : leaves) {
      const int owner = nodes[at(leaf)].rank;
      if (owner == gather[n]) continue;
      if (owner == rank) send[gather[n]].push_back(leaf);
      if (gather[n] == rank) receive[owner].push_back(leaf);
    }
    if (gather[n] == rank) step.combine.insert(step.combine.end(), inner.begin(), inner.end());
  }
  if (program.empty()) program.emplace_back();
  for (auto& [peer, list] : send) program.back().send.push_back({peer, std::move(list)});
  for (auto& [peer, list] : receive) step.receive.push_back({peer, std::move(list)});
  program.push_back(std::move(step));
  return holders;
}

}  // namespace isohalo
