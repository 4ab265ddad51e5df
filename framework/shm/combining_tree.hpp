#pragma once
/// The order in which vectors of ranks are combined: one tree for a number of ranks and a hierarchy.

#include <vector>

#include "framework/shm/hierarchy.hpp"

namespace isohalo {

/// Register `to` becomes register `a` op register `b`. Registers are first what is put in, then what lies between;
/// -1 as `to` is the result.
struct Join {
  int a, b, to;
};

/// Within each innermost group, then over the groups of each level: of 2^k + r values the first r pairs are joined,
/// then the 2^k that are left in halves. All in order, so over ranks in rank order where the groups are.
///
/// Source: Li, Hoefler, Snir 2013, section 2.2 (the tree), 2.3 (excess ranks).
struct CombiningTree {
  /// Numbered from `ranks` on, children before parents, the root last; numbers below `ranks` are ranks.
  struct Node {
    std::vector<int> children;  ///< joined from left to right; two of them but where the arity is forced
    std::vector<int> leaves;    ///< in the order of combining
    bool folds = false;         ///< joins a pair in excess of a power of two
  };

  /// `arity` above 2 gives other bits.
  explicit CombiningTree(const Hierarchy& hierarchy, int arity = 2);

  int root() const { return group_node[0][0]; }
  bool is_leaf(int node) const { return node < ranks; }
  const Node& at(int node) const { return nodes[static_cast<std::size_t>(node - ranks)]; }
  std::vector<int> leaves(int node) const { return is_leaf(node) ? std::vector{node} : at(node).leaves; }

  /// The order of joining that makes `node` of the values of `inputs` (nodes, one above each leaf of `node`), which
  /// are registers 0, 1, .. None for a node that is the only input.
  std::vector<Join> joins(int node, const std::vector<int>& inputs) const;

  int ranks;
  std::vector<Node> nodes;
  std::vector<std::vector<int>> group_node;  ///< [level][group] of the hierarchy

 private:
  int join(std::vector<int> children, bool folds);
  int tree_of(std::vector<int> values, int arity);
};

}  // namespace isohalo
