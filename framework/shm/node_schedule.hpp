#pragma once
/// What the ranks of a compute node do in a collective: the same steps are run (node_execution.cpp), costed
/// (node_cost.hpp) and checked.
///
/// A collective has stages. In a stage a rank may fill a slot of its own, from its vector and from slots of others,
/// and publish it; then it may take from slots into its result. It goes on when it has done both, never waiting for
/// ranks that it takes nothing from.

#include <functional>
#include <vector>

#include "framework/shm/combining_tree.hpp"

namespace isohalo {

/// Of a vector cut into `of` equal parts those from `first` to before `last`.
struct Part {
  int first = 0, last = 1, of = 1;
};

/// What a rank published in a stage, or with kOwn as the stage its own vector.
struct Source {
  int rank, stage;
};
inline constexpr int kOwn = -1;

/// A part is taken from each source, and they are combined: see CombiningTree::joins. One source: a copy. No bytes:
/// the flags of the sources are awaited.
struct Take {
  Part part;
  std::vector<Source> sources;
  std::vector<Join> joins = {};
  int from_block = 0, to_block = 0;  ///< of arrays of a block per rank: of the rank's own vector, of its result
  bool empty = false;
};

struct NodeStage {
  std::vector<Take> fills, results;
  bool publishes = false;
};

struct NodeSchedule {
  explicit NodeSchedule(int ranks_in)
      : ranks(ranks_in), of(static_cast<std::size_t>(ranks_in), std::vector<NodeStage>(1)) {}
  int stages() const { return static_cast<int>(of[0].size()); }
  /// Makes the stages up to this one where there are fewer. One is always there.
  NodeStage& at(int rank, int stage) {
    if (stage >= stages())
      for (auto& mine : of) mine.resize(static_cast<std::size_t>(stage) + 1);
    return of[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }
  const NodeStage& at(int rank, int stage) const {
    return of[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }
  void fill(int rank, int stage, Take take) {
    at(rank, stage).publishes = true;
    at(rank, stage).fills.push_back(std::move(take));
  }
  void result(int rank, int stage, Take take) { at(rank, stage).results.push_back(std::move(take)); }

  int ranks;
  std::vector<std::vector<NodeStage>> of;  ///< [rank][stage]
  bool meets = false;                      ///< no rank ends before all have begun
};

inline constexpr int kNodeSlots = 4;  ///< a rank has as many, used in turn

/// Calls `visit(rank, stage, take, fills)` for each take, and `publish(rank, stage)`, in an order in which a
/// machine with kNodeSlots slots a rank can perform them: when a slot's former publication has been read by all
/// that read it. False if it comes to a stop before the end.
bool walk(const NodeSchedule& schedule,
          const std::function<void(int rank, int stage, const Take& take, bool fills)>& visit,
          const std::function<void(int rank, int stage)>& publish);

/// Who reads what a rank publishes in a stage, and the last stage in which it does.
struct Reader {
  int rank, stage;
};
using Readers = std::vector<std::vector<std::vector<Reader>>>;  ///< [rank][stage]
Readers all_readers(const NodeSchedule& schedule);

// Every schedule below gives each element the value of the tree's root.

/// All ranks publish all, and `root` (-1: every rank) combines all.
NodeSchedule flat_reduction(const CombiningTree& tree, int root);

/// How a vector reaches all ranks from one, or from the owners of its parts.
struct Spreading {
  int level = 0;  ///< 0: all read it there; else a rank of each group of that level first (two stages)
};

/// Each node of the tree by one of its ranks; then the result is spread, or goes to `root` alone (section 2.2).
NodeSchedule tree_reduction(const CombiningTree& tree, const Hierarchy& hierarchy, int root, Spreading spreading);
/// Ranks exchange with those that hold the other half of the tree; ranks in excess of powers of two take the result
/// from others (section 2.3). For trees of arity 2.
NodeSchedule dissemination(const CombiningTree& tree, const Hierarchy& hierarchy);
/// In each group of `level` every rank combines one part; then each part goes up the tree, and is spread (section
/// 2.4). Level 0: every rank of the node has a part ("naive"). `cyclic`: part t begins with the t-th vector and
/// goes round, another order for each part, so only for operations whose order means nothing.
NodeSchedule tiled_reduction(const CombiningTree& tree, const Hierarchy& hierarchy, int level, int root,
                             Spreading spreading, bool cyclic = false);

/// A vector from `root` to all.
NodeSchedule spread_vector(const Hierarchy& hierarchy, int root, Spreading spreading);
/// The same along a tree in which a rank serves `arity` others.
NodeSchedule spread_along_tree(int ranks, int root, int arity);

/// A block of each rank to the root (-1: to all).
NodeSchedule gather_blocks(int ranks, int root);
NodeSchedule scatter_blocks(int ranks, int root);
/// Section 2.6; rounds of dissemination: in round k rank w tells w + 2^k.
NodeSchedule meeting(int ranks);

namespace detail {

/// One rank's part of a schedule, in flat lists.
struct RankSchedule {
  struct Step {
    Part part;
    int from_block, to_block;
    bool empty;
    int first_source, last_source, first_join, last_join;
  };
  struct Stage {
    int first, fills_end, end;  ///< of `steps`
    bool publishes;
    int first_reader, last_reader;
  };
  RankSchedule(const NodeSchedule& schedule, int rank);

  std::vector<Stage> stages;
  std::vector<Step> steps;
  std::vector<Source> sources;
  std::vector<Join> joins;
  std::vector<Reader> readers;
  bool meets;
};

}  // namespace detail

}  // namespace isohalo
