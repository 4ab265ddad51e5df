#pragma once
/// What one rank does to bring the root of a frontier tree together, compiled from the decomposition alone: which
/// values go to whom and which combinations to apply. At run time only bare values move.

#include <cstdint>
#include <vector>

#include "framework/reduce/tree.hpp"

namespace isohalo {

/// Values of some nodes of the frontier tree, to or from one rank, in an order that both know.
struct NodeMessage {
  int peer = -1;
  std::vector<std::int32_t> nodes;
};

/// What it takes to enter a stage: first the messages of `receive` are awaited, then the nodes of `combine` are
/// formed from their children, then the messages of `send` leave. Two ranks list the messages between them in the
/// same order.
struct ProgramStage {
  std::vector<NodeMessage> receive;
  std::vector<std::int32_t> combine;
  std::vector<NodeMessage> send;
};

/// An entry per stage, and one for the end.
using ReduceProgram = std::vector<ProgramStage>;

/// The buffer of outbound values in the binary tree method (Stelz 2022, section 3.1.1).
struct MessageBuffer {
  int values = 4;            ///< the most in one message
  std::int64_t leaves = 64;  ///< a subtree of more leaves than this is not begun with values waiting
};

/// Binary tree reduction (Stelz 2022, Algorithm 1) for any frontier tree: a rank forms the nodes whose first leaf
/// it owns and sends outbound subtree roots (right children whose parent is formed elsewhere) to the parent's
/// owner. Values wait in a buffer until another target follows, the buffer is full or a large subtree is begun.
/// `leaves[n]`: summands below node n, for that last rule. The root ends up at its owner alone.
ReduceProgram binary_tree_program(const std::vector<FrontierNode>& nodes, const std::vector<std::int64_t>& leaves,
                                  int rank, int ranks, const MessageBuffer& buffer = {});

/// Adds the broadcast of the root from its owner: to all ranks by a binomial tree, or to `target` alone (-1: all).
void append_broadcast(ReduceProgram& program, const std::vector<FrontierNode>& nodes, int rank, int ranks,
                      int target = -1);

}  // namespace isohalo
