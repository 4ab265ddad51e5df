#include "framework/reduce/reduce_program.hpp"

#include <map>
#include <utility>

namespace isohalo {

namespace {

std::size_t at(std::int32_t n) {
  return static_cast<std::size_t>(n);
}

/// A message of the binary tree method with its sender.
struct Outbound {
  int from, to;
  std::vector<std::int32_t> nodes;
};

/// All messages, those of one sender in its order, and for each outbound subtree root the message that carries it.
struct OutboundMessages {
  std::vector<Outbound> messages;
  std::map<std::int32_t, std::size_t> carrier;
};

/// Applies the flush rules to the outbound subtree roots of every rank, each in tree order.
OutboundMessages buffer_messages(const std::vector<FrontierNode>& nodes, const std::vector<int>& owner,
                                 const std::vector<std::int64_t>& leaves, int ranks, const MessageBuffer& buffer) {
  OutboundMessages out;
  std::vector<std::vector<std::pair<std::int32_t, int>>> roots(static_cast<std::size_t>(ranks));  // node, target
  std::vector<std::pair<std::int32_t, int>> todo{{0, owner[0]}};  // node, owner of its parent
  while (!todo.empty()) {
    const auto [n, target] = todo.back();
    todo.pop_back();
    const int self = owner[at(n)];
    if (self != target) roots[static_cast<std::size_t>(self)].emplace_back(n, target);
    if (nodes[at(n)].left < 0) continue;
    todo.emplace_back(nodes[at(n)].right, self);
    todo.emplace_back(nodes[at(n)].left, self);
  }
  for (int r = 0; r < ranks; ++r) {
    Outbound waiting{r, -1, {}};
    const auto flush = [&] {
      if (waiting.nodes.empty()) return;
      for (std::int32_t n : waiting.nodes) out.carrier[n] = out.messages.size();
      out.messages.push_back(waiting);
      waiting.nodes.clear();
    };
    for (const auto& [n, target] : roots[static_cast<std::size_t>(r)]) {
      if (leaves[at(n)] > buffer.leaves) flush();
      if (target != waiting.to || static_cast<int>(waiting.nodes.size()) >= buffer.values) flush();
      waiting.to = target;
      waiting.nodes.push_back(n);
    }
    flush();
  }
  return out;
}

/// Walks the subtrees that one rank forms, in tree order.
class BinaryTreeCompiler {
 public:
  BinaryTreeCompiler(const std::vector<FrontierNode>& nodes, const std::vector<int>& owner,
                     const OutboundMessages& outbound, int rank)
      : nodes_(nodes), owner_(owner), outbound_(outbound), rank_(rank) {}

  ReduceProgram compile() {
    program_.emplace_back();
    if (owner_[0] == rank_) form(0);
    for (const Outbound& m : outbound_.messages) {
      if (m.from != rank_) continue;
      for (std::int32_t n : m.nodes) form(n);
      program_.back().send.push_back({m.to, m.nodes});
    }
    return std::move(program_);
  }

 private:
  /// Appends what forms node n: leaves are at hand, foreign right children arrive.
  void form(std::int32_t n) {
    const FrontierNode& node = nodes_[at(n)];
    if (node.left < 0) return;
    form(node.left);
    if (owner_[at(node.right)] == rank_)
      form(node.right);
    else
      receive(node.right);
    program_.back().combine.push_back(n);
  }

  void receive(std::int32_t n) {
    const std::size_t message = outbound_.carrier.at(n);
    if (!arrived_.emplace(message, true).second) return;
    if (!program_.back().combine.empty() || !program_.back().send.empty()) program_.emplace_back();
    const Outbound& m = outbound_.messages[message];
    program_.back().receive.push_back({m.from, m.nodes});
  }

  const std::vector<FrontierNode>& nodes_;
  const std::vector<int>& owner_;
  const OutboundMessages& outbound_;
  int rank_;
  ReduceProgram program_;
  std::map<std::size_t, bool> arrived_;
};

}  // namespace

std::vector<int> node_owners(const std::vector<FrontierNode>& nodes) {
  std::vector<int> owner(nodes.size());
  for (std::size_t n = nodes.size(); n-- > 0;)  // children come after their parent
    owner[n] = nodes[n].left < 0 ? nodes[n].rank : owner[at(nodes[n].left)];
  return owner;
}

ReduceProgram binary_tree_program(const std::vector<FrontierNode>& nodes, const std::vector<std::int64_t>& leaves,
                                  int rank, int ranks, const MessageBuffer& buffer) {
  const std::vector<int> owner = node_owners(nodes);
  const OutboundMessages outbound = buffer_messages(nodes, owner, leaves, ranks, buffer);
  return BinaryTreeCompiler(nodes, owner, outbound, rank).compile();
}

void append_broadcast(ReduceProgram& program, const std::vector<FrontierNode>& nodes, int rank, int ranks,
                      int target) {
  const int root = node_owners(nodes)[0];
  ProgramStep step;
  if (target >= 0) {
    if (target == root) return;
    if (rank == root) step.send.push_back({target, {0}});
    if (rank == target) step.receive.push_back({root, {0}});
  } else {
    const int place = (rank - root + ranks) % ranks;  // in a binomial tree whose root is 0
    std::int64_t bit = 1;
    while (bit < ranks && !(place & bit)) bit *= 2;
    if (place > 0) step.receive.push_back({static_cast<int>((place - bit + root) % ranks), {0}});
    for (bit /= 2; bit >= 1; bit /= 2)
      if (place + bit < ranks) step.send.push_back({static_cast<int>((place + bit + root) % ranks), {0}});
  }
  program.push_back(std::move(step));
}

std::int64_t messages_sent(const ReduceProgram& program) {
  std::int64_t count = 0;
  for (const ProgramStep& step : program) count += static_cast<std::int64_t>(step.send.size());
  return count;
}

}  // namespace isohalo
