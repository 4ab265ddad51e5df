/// The schedules of a compute node's collectives. Source: Li, Hoefler, Snir 2013, sections 2.2 to 2.4 and 2.6.

#include <algorithm>

#include "framework/shm/node_schedule.hpp"

namespace isohalo {

namespace {

Source own(int rank) {
  return {rank, kOwn};
}

/// Where the value of each node of a tree is, by a rank of it.
struct Held {
  int rank = 0, stage = kOwn;
};

/// The rank of a group that reads for the others: the one that has the vector already, or the first.
int reader_of(const std::vector<int>& group, int holder) {
  return std::find(group.begin(), group.end(), holder) != group.end() ? holder : group[0];
}

/// From `held`, which is published, to every rank: by stage held.stage or the one after.
void spread(NodeSchedule& s, const Hierarchy& h, const Held& held, int level) {
  for (const auto& group : h.groups(level)) {
    const int reader = level == 0 ? held.rank : reader_of(group, held.rank);
    const bool passes_on = reader != held.rank;
    const int stage = held.stage + passes_on;
    if (passes_on) s.fill(reader, stage, {.part = {}, .sources = {{held.rank, held.stage}}});
    for (const int r : group) s.result(r, stage, {.part = {}, .sources = {{reader, stage}}});
  }
}

}  // namespace

NodeSchedule flat_reduction(const CombiningTree& tree, int root) {
  NodeSchedule s(tree.ranks);
  s.meets = root < 0;
  const auto order = tree.leaves(tree.root());
  const auto joins = tree.joins(tree.root(), order);
  for (const int r : order) {
    if (r != root) s.fill(r, 0, {.part = {}, .sources = {own(r)}});
    if (root >= 0 && r != root) continue;
    Take take{.part = {}, .sources = {}, .joins = joins};
    for (const int from : order) take.sources.push_back(from == r ? own(r) : Source{from, 0});
    s.result(r, 0, take);
  }
  return s;
}

NodeSchedule tree_reduction(const CombiningTree& tree, const Hierarchy& h, int root, Spreading spreading) {
  // A rank publishes once in a stage; what it holds and nobody else reads, it keeps as it is.
  NodeSchedule s(tree.ranks);
  s.meets = root < 0;
  std::vector<Held> held(tree.nodes.size() + static_cast<std::size_t>(tree.ranks));
  const auto at = [&](int node) -> Held& { return held[static_cast<std::size_t>(node)]; };
  std::vector<int> next(static_cast<std::size_t>(tree.ranks), 0);  // stage in which a rank may publish
  for (int r = 0; r < tree.ranks; ++r) at(r).rank = r;
  const auto published = [&](int node) {
    Held& v = at(node);
    if (v.stage == kOwn) {
      s.fill(v.rank, 0, {.part = {}, .sources = {own(v.rank)}});
      v.stage = 0;
      next[static_cast<std::size_t>(v.rank)] = 1;
    }
    return Source{v.rank, v.stage};
  };
  for (int n = tree.ranks; n <= tree.root(); ++n) {
    const auto& node = tree.at(n);
    const bool to_root = std::find(node.leaves.begin(), node.leaves.end(), root) != node.leaves.end();
    const int holder = to_root ? root : at(node.children[0]).rank;
    Take take{.part = {}, .sources = {}, .joins = tree.joins(n, node.children)};
    int stage = next[static_cast<std::size_t>(holder)];
    for (const int child : node.children) {
      const bool mine = at(child).rank == holder;
      take.sources.push_back(mine ? Source{holder, at(child).stage} : published(child));
      stage = std::max({stage, at(child).stage, next[static_cast<std::size_t>(holder)]});
    }
    if (n == tree.root() && root >= 0)
      s.result(holder, stage, take);
    else
      s.fill(holder, stage, take);
    at(n) = {holder, stage};
    next[static_cast<std::size_t>(holder)] = stage + 1;
  }
  if (tree.ranks == 1) s.result(0, 0, {.part = {}, .sources = {own(0)}});
  if (root < 0 && tree.ranks > 1) spread(s, h, at(tree.root()), spreading.level);
  return s;
}

NodeSchedule dissemination(const CombiningTree& tree, const Hierarchy& h) {
  NodeSchedule s(tree.ranks);
  s.meets = true;
  struct Value {
    std::vector<int> ranks;  ///< that hold it
    int stage = kOwn;        ///< in which all of them publish it
  };
  std::vector<Value> values(tree.nodes.size() + static_cast<std::size_t>(tree.ranks));
  const auto at = [&](int node) -> Value& { return values[static_cast<std::size_t>(node)]; };
  for (int r = 0; r < tree.ranks; ++r) {
    at(r) = {{r}, 0};
    if (tree.ranks > 1) s.fill(r, 0, {.part = {}, .sources = {own(r)}});
  }
  for (int n = tree.ranks; n <= tree.root(); ++n) {
    const auto& node = tree.at(n);
    Value& made = at(n);
    made.stage = 1 + std::max(at(node.children[0]).stage, at(node.children[1]).stage);
    for (int side = 0; side < (node.folds ? 1 : 2); ++side) {
      const Value& mine = at(node.children[static_cast<std::size_t>(side)]);
      const Value& theirs = at(node.children[static_cast<std::size_t>(1 - side)]);
      for (std::size_t k = 0; k < mine.ranks.size(); ++k) {
        const int me = mine.ranks[k];
        Source a{me, mine.stage}, b{theirs.ranks[k % theirs.ranks.size()], theirs.stage};
        if (mine.stage == 0) a = own(me);
        if (side == 1) std::swap(a, b);
        s.fill(me, made.stage, {.part = {}, .sources = {a, b}, .joins = {{0, 1, -1}}});
        made.ranks.push_back(me);
      }
    }
  }
  const Value& root = at(tree.root());
  for (int r = 0; r < tree.ranks; ++r) {
    int from = r;
    if (std::find(root.ranks.begin(), root.ranks.end(), r) == root.ranks.end())  // left out: from one that is near
      from = *std::min_element(root.ranks.begin(), root.ranks.end(), [&](int a, int b) {
        return std::pair(h.distance(r, a), (a - r + tree.ranks) % tree.ranks) <
               std::pair(h.distance(r, b), (b - r + tree.ranks) % tree.ranks);
      });
    s.result(r, root.stage, {.part = {}, .sources = {tree.ranks == 1 ? own(r) : Source{from, root.stage}}});
  }
  return s;
}

NodeSchedule tiled_reduction(const CombiningTree& tree, const Hierarchy& h, int level, int root,
                             Spreading spreading, bool cyclic) {
  NodeSchedule s(tree.ranks);
  s.meets = root < 0;
  const auto& groups = h.groups(level);
  std::size_t most = 0;
  for (const auto& g : groups) most = std::max(most, g.size());
  const int parts = static_cast<int>(most);
  const auto owner = [&](int group, int part) {
    const auto& ranks = groups[static_cast<std::size_t>(group)];
    return ranks[static_cast<std::size_t>(part) % ranks.size()];
  };
  for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
    for (const int r : groups[static_cast<std::size_t>(g)])  // publishes all but the parts that it owns
      for (int t = 0, first = 0; t <= parts; ++t) {
        if (t < parts && owner(g, t) != r) continue;
        if (first < t) s.fill(r, 0, {.part = {first, t, parts}, .sources = {own(r)}});
        first = t + 1;
      }
    const int node = tree.group_node[static_cast<std::size_t>(level)][static_cast<std::size_t>(g)];
    const auto leaves = tree.leaves(node);
    for (int t = 0; t < parts; ++t) {
      Take take{.part = {t, t + 1, parts}, .sources = {}, .joins = tree.joins(node, leaves)};
      for (std::size_t k = 0; k < leaves.size(); ++k) {
        const int from = leaves[(k + (cyclic ? static_cast<std::size_t>(t) : 0)) % leaves.size()];
        take.sources.push_back(from == owner(g, t) ? own(from) : Source{from, 0});
      }
      s.fill(owner(g, t), 1, take);
    }
  }
  // Up the tree, the parts side by side.
  struct Value {
    int group = 0, stage = 1;
  };
  std::vector<Value> values(tree.nodes.size() + static_cast<std::size_t>(tree.ranks));
  const auto at = [&](int node) -> Value& { return values[static_cast<std::size_t>(node)]; };
  std::vector<bool> known(values.size());
  for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
    const int node = tree.group_node[static_cast<std::size_t>(level)][static_cast<std::size_t>(g)];
    at(node).group = g;
    known[static_cast<std::size_t>(node)] = true;
  }
  const int root_group = root < 0 ? -1 : h.group(level, root);
  for (int n = tree.ranks; n <= tree.root(); ++n) {
    if (known[static_cast<std::size_t>(n)]) continue;
    const auto& children = tree.at(n).children;
    if (!std::all_of(children.begin(), children.end(), [&](int c) { return known[static_cast<std::size_t>(c)]; }))
      continue;  // within a group
    Value made{at(children[0]).group, 0};
    for (const int c : children) {
      made.stage = std::max(made.stage, at(c).stage + 1);
      if (at(c).group == root_group) made.group = root_group;
    }
    for (int t = 0; t < parts; ++t) {
      Take take{.part = {t, t + 1, parts}, .sources = {}, .joins = tree.joins(n, children)};
      for (const int c : children) take.sources.push_back({owner(at(c).group, t), at(c).stage});
      s.fill(owner(made.group, t), made.stage, take);
    }
    at(n) = made;
    known[static_cast<std::size_t>(n)] = true;
  }
  const Value held = at(tree.root());
  for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
    const bool passes_on = root < 0 && spreading.level > 0 && g != held.group;
    const int from = passes_on ? g : held.group, stage = held.stage + passes_on;
    for (int t = 0; t < parts; ++t) {
      const Part part{t, t + 1, parts};
      if (passes_on) s.fill(owner(g, t), stage, {.part = part, .sources = {{owner(held.group, t), held.stage}}});
    }
    for (const int r : groups[static_cast<std::size_t>(g)])
      for (int k = 0; k < parts && (root < 0 || r == root); ++k) {  // each begins with a part of its own
        const int t = (k + r) % parts;
        s.result(r, stage, {.part = {t, t + 1, parts}, .sources = {{owner(from, t), stage}}});
      }
  }
  return s;
}

NodeSchedule spread_vector(const Hierarchy& h, int root, Spreading spreading) {
  NodeSchedule s(h.ranks());
  s.fill(root, 0, {.part = {}, .sources = {own(root)}});
  spread(s, h, {root, 0}, spreading.level);
  for (auto& stage : s.of[static_cast<std::size_t>(root)]) stage.results.clear();  // it is there
  return s;
}

NodeSchedule spread_along_tree(int ranks, int root, int arity) {
  NodeSchedule s(ranks);
  std::vector<int> depth(static_cast<std::size_t>(ranks), 0);
  for (int k = 0; k < ranks; ++k) {  // places in the tree, from the root
    const int me = (root + k) % ranks, place = (k - 1) / arity, from = (root + place) % ranks;
    const bool serves = k * arity + 1 < ranks;
    int& stage = depth[static_cast<std::size_t>(k)];
    if (k == 0) {
      s.fill(me, 0, {.part = {}, .sources = {own(me)}});
      continue;
    }
    const int there = depth[static_cast<std::size_t>(place)];
    stage = there + serves;
    if (serves) s.fill(me, stage, {.part = {}, .sources = {{from, there}}});
    s.result(me, stage, {.part = {}, .sources = {serves ? Source{me, stage} : Source{from, there}}});
  }
  return s;
}

NodeSchedule gather_blocks(int ranks, int root) {
  NodeSchedule s(ranks);
  s.meets = root < 0;
  for (int r = 0; r < ranks; ++r) {
    if (r != root) s.fill(r, 0, {.part = {}, .sources = {own(r)}});
    for (int k = 0; k < ranks && (root < 0 || r == root); ++k) {  // each begins elsewhere
      const int from = (r + k) % ranks;
      s.result(r, 0, {.part = {}, .sources = {from == r ? own(r) : Source{from, 0}}, .to_block = from});
    }
  }
  return s;
}

NodeSchedule scatter_blocks(int ranks, int root) {
  NodeSchedule s(ranks);
  for (int r = 0; r < ranks; ++r) {
    const Part part{r, r + 1, ranks};
    if (r != root) {
      s.fill(root, 0, {.part = part, .sources = {own(root)}, .from_block = r});
      s.result(r, 0, {.part = part, .sources = {{root, 0}}});
    } else {
      s.result(r, 0, {.part = {}, .sources = {own(root)}, .from_block = r});
    }
  }
  return s;
}

NodeSchedule meeting(int ranks) {
  NodeSchedule s(ranks);
  s.meets = true;
  int stage = 0;
  for (int far = 1; far < ranks; far *= 2, ++stage)
    for (int r = 0; r < ranks; ++r) {
      s.at(r, stage).publishes = true;
      s.result(r, stage, {.part = {}, .sources = {{(r - far + ranks) % ranks, stage}}, .empty = true});
    }
  return s;
}

}  // namespace isohalo
