#include "framework/shm/combining_tree.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace isohalo {

CombiningTree::CombiningTree(const Hierarchy& hierarchy, int arity) : ranks(hierarchy.ranks()) {
  const int levels = hierarchy.levels();
  group_node.resize(static_cast<std::size_t>(levels));
  for (int level = levels - 1; level >= 0; --level) {
    for (const auto& group : hierarchy.groups(level)) {
      std::vector<int> values = group;
      if (level + 1 < levels) {  // of the groups within, in the order of their numbers
        values.clear();
        for (const int rank : group) {
          const int within = group_node[static_cast<std::size_t>(level + 1)]
                                       [static_cast<std::size_t>(hierarchy.group(level + 1, rank))];
          if (std::find(values.begin(), values.end(), within) == values.end()) values.push_back(within);
        }
      }
      group_node[static_cast<std::size_t>(level)].push_back(tree_of(values, arity));
    }
  }
}

int CombiningTree::join(std::vector<int> children, bool folds) {
  Node node{.children = std::move(children), .leaves = {}, .folds = folds};
  for (const int child : node.children) {
    const auto below = leaves(child);
    node.leaves.insert(node.leaves.end(), below.begin(), below.end());
  }
  nodes.push_back(std::move(node));
  return ranks + static_cast<int>(nodes.size()) - 1;
}

int CombiningTree::tree_of(std::vector<int> values, int arity) {
  if (arity == 2) {
    const std::size_t excess = values.size() - std::bit_floor(values.size());
    for (std::size_t i = 0; i < excess; ++i) values[i] = join({values[2 * i], values[2 * i + 1]}, true);
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(excess),
                 values.begin() + static_cast<std::ptrdiff_t>(2 * excess));
  }
  while (values.size() > 1) {
    std::vector<int> next;
    for (auto from = values.begin(); from != values.end();) {
      const auto to = from + std::min<std::ptrdiff_t>(arity, values.end() - from);
      next.push_back(to - from == 1 ? *from : join({from, to}, false));
      from = to;
    }
    values = std::move(next);
  }
  return values[0];
}

std::vector<Join> CombiningTree::joins(int node, const std::vector<int>& inputs) const {
  std::vector<Join> list;
  const int first_between = static_cast<int>(inputs.size());
  std::vector<bool> used;  // of the registers between
  const auto release = [&](int reg) {
    if (reg >= first_between) used[static_cast<std::size_t>(reg - first_between)] = false;
  };
  const std::function<int(int)> value = [&](int n) -> int {
    if (const auto found = std::find(inputs.begin(), inputs.end(), n); found != inputs.end())
      return static_cast<int>(found - inputs.begin());
    int so_far = -1;
    for (const int child : at(n).children) {
      const int next = value(child);
      if (so_far < 0) {
        so_far = next;
        continue;
      }
      release(so_far);
      release(next);
      const auto free = std::find(used.begin(), used.end(), false) - used.begin();
      if (free == static_cast<std::ptrdiff_t>(used.size())) used.push_back(false);
      used[static_cast<std::size_t>(free)] = true;
      list.push_back({so_far, next, first_between + static_cast<int>(free)});
      so_far = list.back().to;
    }
    return so_far;
  };
  value(node);
  if (!list.empty()) list.back().to = -1;
  return list;
}

}  // namespace isohalo
