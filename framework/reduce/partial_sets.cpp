#include "framework/reduce/partial_sets.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "framework/schedule/rank_set.hpp"

namespace isohalo {

using detail::at;

namespace {

using Nodes = std::vector<std::int32_t>;

/// A bit per rank that takes part in a stage: this rank has bit 0, its peers the others, up to 63 at a time.
using Bits = std::uint64_t;
constexpr std::size_t kMostPeers = 63;

/// Which nodes can be formed by which of these ranks, from what each holds. One pass over the tree for all of them.
class CompleteNodes {
 public:
  CompleteNodes(const std::vector<FrontierNode>& nodes, const std::vector<int>& holders, int ranks)
      : nodes_(nodes), holders_(holders), sets_of_(static_cast<std::size_t>(ranks)), complete_(nodes.size()) {}

  /// Bit k: from the contributions in `sets[k]`.
  void find(const std::vector<RankSet>& sets) {
    std::fill(sets_of_.begin(), sets_of_.end(), 0);
    for (std::size_t k = 0; k < sets.size(); ++k)
      for (const auto& [first, last] : sets[k].intervals())
        for (std::size_t r = at(first); r < at(last); ++r) sets_of_[r] |= Bits{1} << k;
    for (std::size_t n = nodes_.size(); n-- > 0;)  // children come after their parent
      complete_[n] = holders_[n] >= 0      ? sets_of_[at(holders_[n])]
                     : nodes_[n].left >= 0 ? complete_[at(nodes_[n].left)] & complete_[at(nodes_[n].right)]
                                           : 0;
  }
  Bits operator[](std::size_t n) const { return complete_[n]; }

  /// Appends the largest nodes at and below n of the sender that the receiver lacks, in tree order.
  void append_message(std::int32_t n, std::size_t sender, std::size_t receiver, Nodes& list) const {
    if (complete_[at(n)] >> receiver & 1) return;
    if (complete_[at(n)] >> sender & 1) return list.push_back(n);
    if (nodes_[at(n)].left < 0) return;
    append_message(nodes_[at(n)].left, sender, receiver, list);
    append_message(nodes_[at(n)].right, sender, receiver, list);
  }

 private:
  const std::vector<FrontierNode>& nodes_;
  const std::vector<int>& holders_;
  std::vector<Bits> sets_of_;   ///< by rank
  std::vector<Bits> complete_;  ///< by node
};

/// The peers of a stage, each once, in rank order.
std::vector<int> peers_of(const StageActions& actions) {
  std::set<int> peers(actions.send.begin(), actions.send.end());
  peers.insert(actions.receive.begin(), actions.receive.end());
  return {peers.begin(), peers.end()};
}

/// To all ranks: in each stage a rank sends the largest nodes that the receiver lacks.
void append_sets_to_all(ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                        const std::vector<int>& holders, const Schedule& schedule, int rank) {
  CompleteNodes complete(nodes, holders, schedule.ranks());
  complete.find({RankSet(rank, rank + 1)});
  for (std::size_t n = nodes.size(); n-- > 0;)  // none in a frontier, whose leaves are maximal
    if (complete[n] && holders[n] < 0) program.back().combine.push_back(static_cast<std::int32_t>(n));
  StageActions actions;
  for (int s = 0; s < schedule.size(); ++s) {
    schedule.actions(s, rank, actions);
    const std::vector<int> peers = peers_of(actions);
    std::map<int, Nodes> to, from;
    std::vector<char> known(nodes.size());  // nodes that this rank has formed, or that arrive
    for (std::size_t first = 0; first == 0 || first < peers.size(); first += kMostPeers) {
      const std::size_t last = std::min(first + kMostPeers, peers.size());
      std::vector<RankSet> sets{contributions(schedule, s, rank)};
      for (std::size_t k = first; k < last; ++k) sets.push_back(contributions(schedule, s, peers[k]));
      complete.find(sets);
      Bits arriving = 1;
      for (std::size_t k = first, bit = 1; k < last; ++k, ++bit) {
        const int peer = peers[k];
        if (std::ranges::find(actions.send, peer) != actions.send.end())
          complete.append_message(0, 0, bit, to[peer]);
        if (std::ranges::find(actions.receive, peer) == actions.receive.end()) continue;
        complete.append_message(0, bit, 0, from[peer]);
        arriving |= Bits{1} << bit;
      }
      for (std::size_t n = 0; n < nodes.size(); ++n) known[n] |= (complete[n] & arriving) != 0;
    }
    for (const int peer : actions.send)
      if (auto& list = to[peer]; !list.empty()) program.back().send.push_back({peer, std::move(list)});
    ProgramStage stage;
    for (const int peer : actions.receive)
      if (auto& list = from[peer]; !list.empty()) stage.receive.push_back({peer, std::move(list)});
    for (std::size_t n = nodes.size(); n-- > 0;) {
      if (known[n] || holders[n] >= 0 || nodes[n].left < 0) continue;
      if (!known[at(nodes[n].left)] || !known[at(nodes[n].right)]) continue;
      known[n] = 1;
      stage.combine.push_back(static_cast<std::int32_t>(n));
    }
    program.push_back(std::move(stage));
  }
}

/// How one rank comes to the nodes that it needs after a stage.
struct Supply {
  const std::vector<FrontierNode>& nodes;
  const std::vector<int>& holders;
  std::vector<std::pair<int, RankSet>> sources = {};  ///< ranks with their contributions before; first it itself
  std::map<int, Nodes> taken = {};                    ///< from whom
  Nodes combine = {};                                 ///< children first

  /// Takes node n from the first that can form it, or else combines it.
  void satisfy(std::int32_t n) {
    const auto source = std::ranges::find_if(sources, [&](const auto& s) { return can_form(n, s.second); });
    if (source != sources.end()) return taken[source->first].push_back(n);
    satisfy(nodes[at(n)].left);
    satisfy(nodes[at(n)].right);
    combine.push_back(n);
  }

  /// Combines node n from what is held at the beginning.
  void form(std::int32_t n) {
    if (holders[at(n)] >= 0) return;
    form(nodes[at(n)].left);
    form(nodes[at(n)].right);
    combine.push_back(n);
  }

 private:
  bool can_form(std::int32_t n, const RankSet& contributions) const {
    if (holders[at(n)] >= 0) return contributions.contains(holders[at(n)]);
    return can_form(nodes[at(n)].left, contributions) && can_form(nodes[at(n)].right, contributions);
  }
};

/// To one rank: worked out backwards from what that needs. The nodes that the ranks need at any time are an
/// antichain that covers all leaves, each needed by one rank, so the work is that of one reduction.
void append_sets_to_one(ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                        const std::vector<int>& holders, const Schedule& schedule, int rank, int root) {
  const std::size_t first = program.size() - 1;
  program.resize(program.size() + static_cast<std::size_t>(schedule.size()));
  std::map<int, Nodes> demands{{root, {0}}};
  for (int s = schedule.size(); s-- > 0;) {
    ProgramStage* const stage = &program[first + static_cast<std::size_t>(s)];
    std::map<int, Nodes> before;
    for (const auto& [needy, wanted] : demands) {
      Supply supply{nodes, holders, {{needy, contributions(schedule, s, needy)}}};
      for (const int peer : schedule.actions(s, needy).receive)
        supply.sources.emplace_back(peer, contributions(schedule, s, peer));
      for (const std::int32_t n : wanted) supply.satisfy(n);
      for (auto& [source, list] : supply.taken) {
        before[source].insert(before[source].end(), list.begin(), list.end());
        if (source == needy) continue;
        std::ranges::sort(list);
        if (source == rank) stage[0].send.push_back({needy, list});
        if (needy == rank) stage[1].receive.push_back({source, list});
      }
      if (needy == rank) stage[1].combine = std::move(supply.combine);
    }
    demands = std::move(before);
  }
  Supply own{nodes, holders};
  for (const std::int32_t n : demands[rank]) own.form(n);
  program[first].combine.insert(program[first].combine.end(), own.combine.begin(), own.combine.end());
}

/// Calls `visit` for all nodes at and below n, children first.
template <class Visit>
void visit_subtree(const std::vector<FrontierNode>& nodes, std::int32_t n, const Visit& visit) {
  if (nodes[at(n)].left >= 0) {
    visit_subtree(nodes, nodes[at(n)].left, visit);
    visit_subtree(nodes, nodes[at(n)].right, visit);
  }
  visit(n);
}

}  // namespace

void append_partial_sets(ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                         const std::vector<int>& holders, const Schedule& schedule, int rank, int root) {
  if (program.empty()) program.emplace_back();
  if (root < 0)
    append_sets_to_all(program, nodes, holders, schedule, rank);
  else
    append_sets_to_one(program, nodes, holders, schedule, rank, root);
}

void append_resolve(ReduceProgram& program, const std::vector<FrontierNode>& nodes, const std::vector<int>& gather,
                    int rank) {
  std::map<int, Nodes> send, receive;
  ProgramStage stage;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const int gatherer = gather[n];
    if (gatherer < 0) continue;
    visit_subtree(nodes, static_cast<std::int32_t>(n), [&](std::int32_t below) {
      if (const int owner = nodes[at(below)].rank; owner < 0) {
        if (gatherer == rank) stage.combine.push_back(below);
      } else if (owner != gatherer) {
        if (owner == rank) send[gatherer].push_back(below);
        if (gatherer == rank) receive[owner].push_back(below);
      }
    });
  }
  if (program.empty()) program.emplace_back();
  for (auto& [peer, list] : send) program.back().send.push_back({peer, std::move(list)});
  for (auto& [peer, list] : receive) stage.receive.push_back({peer, std::move(list)});
  program.push_back(std::move(stage));
}

}  // namespace isohalo
