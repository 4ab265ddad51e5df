#include "framework/reduce/keyed_sets.hpp"

#include <map>
#include <utility>

#include "framework/reduce/rank_set.hpp"

namespace isohalo {

namespace {

using NodeFlags = std::vector<char>;

std::size_t at(std::int32_t n) {
  return static_cast<std::size_t>(n);
}

/// Which nodes can be formed from what the ranks of a set hold.
NodeFlags complete_nodes(const std::vector<FrontierNode>& nodes, const std::vector<int>& leaf_ranks,
                         const RankSet& known) {
  NodeFlags complete(nodes.size());
  for (std::size_t n = nodes.size(); n-- > 0;)  // children come after their parent
    complete[n] = leaf_ranks[n] >= 0
                      ? known.contains(leaf_ranks[n])
                      : nodes[n].left >= 0 && complete[at(nodes[n].left)] && complete[at(nodes[n].right)];
  return complete;
}

/// The largest nodes of `sender` that the receiver lacks, in tree order.
std::vector<std::int32_t> message_nodes(const std::vector<FrontierNode>& nodes, const NodeFlags& sender,
                                        const NodeFlags& receiver) {
  std::vector<std::int32_t> list, todo{0};
  while (!todo.empty()) {
    const std::int32_t n = todo.back();
    todo.pop_back();
    if (receiver[at(n)]) continue;
    if (sender[at(n)]) {
      list.push_back(n);
    } else if (nodes[at(n)].left >= 0) {
      todo.push_back(nodes[at(n)].right);
      todo.push_back(nodes[at(n)].left);
    }
  }
  return list;
}

}  // namespace

std::vector<int> leaf_ranks(const std::vector<FrontierNode>& nodes) {
  std::vector<int> ranks;
  for (const FrontierNode& n : nodes) ranks.push_back(n.left < 0 ? n.rank : -1);
  return ranks;
}

void append_keyed_sets(ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                       const std::vector<int>& leaf_ranks, const Schedule& schedule, int rank) {
  if (program.empty()) program.emplace_back();
  StageActions actions;
  const auto complete_at = [&](int stage, int r) {
    return complete_nodes(nodes, leaf_ranks, contributions(schedule, stage, r));
  };
  NodeFlags mine = complete_nodes(nodes, leaf_ranks, RankSet(rank, rank + 1));
  for (std::size_t n = nodes.size(); n-- > 0;)  // none in a frontier, whose leaves are maximal
    if (mine[n] && leaf_ranks[n] < 0) program.back().combine.push_back(static_cast<std::int32_t>(n));
  for (int s = 0; s < schedule.size(); ++s) {
    schedule.actions(s, rank, actions);
    std::map<int, NodeFlags> others;
    for (const auto* list : {&actions.send, &actions.receive})
      for (const int peer : *list)
        if (!others.contains(peer)) others.emplace(peer, complete_at(s, peer));
    for (const int to : actions.send)
      if (auto list = message_nodes(nodes, mine, others[to]); !list.empty())
        program.back().send.push_back({to, std::move(list)});
    ProgramStep step;
    NodeFlags known = mine;  // by this rank before, or complete in what arrives
    for (const int from : actions.receive) {
      if (auto list = message_nodes(nodes, others[from], mine); !list.empty())
        step.receive.push_back({from, std::move(list)});
      for (std::size_t n = 0; n < known.size(); ++n) known[n] |= others[from][n];
    }
    for (std::size_t n = nodes.size(); n-- > 0;) {
      if (known[n] || leaf_ranks[n] >= 0 || nodes[n].left < 0) continue;
      if (!known[at(nodes[n].left)] || !known[at(nodes[n].right)]) continue;
      known[n] = 1;
      step.combine.push_back(static_cast<std::int32_t>(n));
    }
    mine = complete_at(s + 1, rank);
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
