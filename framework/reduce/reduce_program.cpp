#include "framework/reduce/reduce_program.hpp"

#include <set>
#include <utility>

namespace isohalo {

using detail::at;

namespace {

/// The rank that forms each node in the binary tree method: the owner of its first leaf.
std::vector<int> node_owners(const std::vector<FrontierNode>& nodes) {
  std::vector<int> owner(nodes.size());
  for (std::size_t n = nodes.size(); n-- > 0;)  // children come after their parent
    owner[n] = nodes[n].left < 0 ? nodes[n].rank : owner[at(nodes[n].left)];
  return owner;
}

/// A message of the binary tree method with its sender.
struct Outbound {
  int from, to;
  std::vector<std::int32_t> nodes;
};

/// All messages, those of one sender in its order, and for each outbound subtree root the message that carries it.
struct OutboundMessages {
  std::vector<Outbound> messages;
  std::vector<std::size_t> carrier;  ///< by node
};

/// Applies the flush rules to the outbound subtree roots of every rank, each in tree order.
OutboundMessages buffer_messages(const std::vector<FrontierNode>& nodes, const std::vector<int>& owner,
                                 const std::vector<std::int64_t>& leaves, int ranks, const MessageBuffer& buffer) {
  constexpr auto none = static_cast<std::size_t>(-1);
  OutboundMessages out{{}, std::vector<std::size_t>(nodes.size(), none)};
  std::vector<int> target(nodes.size(), owner[0]);                          // owner of the parent
  std::vector<std::size_t> filling(static_cast<std::size_t>(ranks), none);  // the last message of each rank
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].left >= 0) target[at(nodes[n].left)] = target[at(nodes[n].right)] = owner[n];
    if (owner[n] == target[n]) continue;
    std::size_t& message = filling[at(owner[n])];
    if (message == none || leaves[n] > buffer.leaves || out.messages[message].to != target[n] ||
        std::ssize(out.messages[message].nodes) >= buffer.values) {
      message = out.messages.size();
      out.messages.push_back({owner[n], target[n], {}});
    }
    out.messages[message].nodes.push_back(static_cast<std::int32_t>(n));
    out.carrier[n] = message;
  }
  return out;
}

/// Walks the subtrees that one rank forms, in tree order.
struct BinaryTreeCompiler {
  const std::vector<FrontierNode>& nodes;
  const std::vector<int>& owner;
  const OutboundMessages& outbound;
  ReduceProgram program;
  std::set<std::size_t> arrived;

  /// Appends what forms node n: leaves are at hand, foreign right children arrive.
  void form(std::int32_t n) {
    const FrontierNode& node = nodes[at(n)];
    if (node.left < 0) return;
    form(node.left);
    if (owner[at(node.right)] == owner[at(n)])
      form(node.right);
    else
      receive(outbound.carrier[at(node.right)]);
    program.back().combine.push_back(n);
  }

  void receive(std::size_t message) {
    if (!arrived.insert(message).second) return;
    if (!program.back().combine.empty() || !program.back().send.empty()) program.emplace_back();
    const Outbound& m = outbound.messages[message];
    program.back().receive.push_back({m.from, m.nodes});
  }
};

}  // namespace

ReduceProgram binary_tree_program(const std::vector<FrontierNode>& nodes, const std::vector<std::int64_t>& leaves,
                                  int rank, int ranks, const MessageBuffer& buffer) {
  const std::vector<int> owner = node_owners(nodes);
  const OutboundMessages outbound = buffer_messages(nodes, owner, leaves, ranks, buffer);
  BinaryTreeCompiler compiler{nodes, owner, outbound, ReduceProgram(1), {}};
  if (owner[0] == rank) compiler.form(0);
  for (const Outbound& m : outbound.messages) {
    if (m.from != rank) continue;
    for (const std::int32_t n : m.nodes) compiler.form(n);
    compiler.program.back().send.push_back({m.to, m.nodes});
  }
  return std::move(compiler.program);
}

void append_broadcast(ReduceProgram& program, const std::vector<FrontierNode>& nodes, int rank, int ranks,
                      int target) {
  const int root = node_owners(nodes)[0];
  ProgramStage stage;
  if (target >= 0) {
    if (target == root) return;
    if (rank == root) stage.send.push_back({target, {0}});
    if (rank == target) stage.receive.push_back({root, {0}});
  } else {
    const int place = (rank - root + ranks) % ranks;  // in a binomial tree whose root is 0
    std::int64_t bit = 1;
    while (bit < ranks && !(place & bit)) bit *= 2;
    if (place > 0) stage.receive.push_back({static_cast<int>((place - bit + root) % ranks), {0}});
    for (bit /= 2; bit >= 1; bit /= 2)
      if (place + bit < ranks) stage.send.push_back({static_cast<int>((place + bit + root) % ranks), {0}});
  }
  program.push_back(std::move(stage));
}

}  // namespace isohalo
