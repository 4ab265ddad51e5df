#pragma once
/// What a schedule of a compute node's ranks costs.
///
/// Source: Li, Hoefler, Snir 2013, section 2.1: m cache lines take a + b m, and with d readers on one link a + B d
/// m. Who reads over which link at the same time is counted from the schedule, so that equations (1) to (11) are
/// special cases.

#include <functional>
#include <string>
#include <vector>

#include "framework/shm/node_schedule.hpp"

namespace isohalo {

/// Reading what a rank at some distance (Hierarchy::distance) has written last, in nanoseconds.
struct ReachCosts {
  double latency_ns = 0;      ///< a
  double line_ns = 0;         ///< b
  double shared_line_ns = 0;  ///< B: of each of the readers that share a link or a cache
};

struct NodeCosts {
  std::vector<ReachCosts> reach;  ///< [distance]; 0 is the rank's own cache, which is also where it writes
  /// Ranks are processes: a vector is first copied to where others can read it. Without it they are threads, as in
  /// the paper.
  bool copies_in = true;
  /// Instead of `reach` by distance, where a hierarchy is too coarse: what `reader` pays for what `writer` has.
  std::function<ReachCosts(int reader, int writer)> between = nullptr;

  const ReachCosts& at(int distance) const;
};

inline constexpr double kLineBytes = 64;

/// Nanoseconds until the last rank ends; all begin at once. `bytes`: of the vector.
double schedule_ns(const NodeSchedule& schedule, const Hierarchy& hierarchy, const NodeCosts& costs, double bytes);

/// What those in a table of the paper would be called.
struct NodeAlgorithm {
  enum class Kind { flat, tree, dissemination, tiled, cyclic };
  Kind kind = Kind::flat;
  int level = 0;  ///< of the hierarchy: whose groups have tiles, and whose first ranks read for the others
  bool two_stages = false;  ///< the spreading
  int arity = 2;            ///< of the tree; others than 2 give other bits

  /// "flat", "tree", "tree-4", "dissemination", "tiled", "tiled@1", "cyclic", with "+2@1" for two stages.
  std::string text() const;
  /// Throws UsageError on any other text.
  static NodeAlgorithm of_text(const std::string& text);
  friend bool operator==(const NodeAlgorithm&, const NodeAlgorithm&) = default;
};

/// Those that give the bits of the tree, on ranks that lie so. The first is never wrong.
std::vector<NodeAlgorithm> reduction_algorithms(const Hierarchy& hierarchy, int root);
/// Of a tree of the algorithm's arity. Throws UsageError if the hierarchy has no such level.
NodeSchedule reduction_schedule(const NodeAlgorithm& algorithm, const Hierarchy& hierarchy, int root);
/// tree: along a tree of the arity; else in one or two stages.
NodeSchedule broadcast_schedule(const NodeAlgorithm& algorithm, const Hierarchy& hierarchy, int root);
std::vector<NodeAlgorithm> broadcast_algorithms(const Hierarchy& hierarchy);

}  // namespace isohalo
