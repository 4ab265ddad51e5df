#pragma once
/// How the ranks of a compute node lie: groups that share a cache or a socket, nested.
///
/// Source: Li, Hoefler, Snir 2013, section 2.1.

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace isohalo {

/// Groups of ranks at levels: level 0 is one group of all, each further level divides every group of the one
/// before. Groups are numbered by their lowest rank.
class Hierarchy {
 public:
  /// No levels below the compute node.
  explicit Hierarchy(int ranks);

  /// Of numbers joined by "x": "2x4x2" is 2 groups of 4 groups of 2 consecutive ranks. Throws UsageError if it is
  /// no such text or holds fewer than `ranks`; those that are too many stay empty.
  static Hierarchy of_text(const std::string& text, int ranks);
  /// Where the rank of that number is in a hierarchy given as text, outermost level first. Throws as `of_text`.
  static std::vector<std::int64_t> place_of(const std::string& text, int number);
  /// `places[rank]`: of each level, outermost first, where the rank is; equal ones share that level's group if they
  /// share those of the levels before. Levels that divide nothing are left out.
  static Hierarchy of_places(const std::vector<std::vector<std::int64_t>>& places);
  /// What hwloc says: sockets, NUMA domains, L3 and L2 caches. A rank that may run in several of them is bound to
  /// none, and then that level is left out. If `own_place` is not empty, it is asked instead of hwloc. Collective
  /// over `node`, whose ranks share a compute node; waits with back-off.
  static Hierarchy of_machine(MPI_Comm node, int spins, const std::vector<std::int64_t>& own_place);

  int ranks() const { return static_cast<int>(group_of_[0].size()); }
  /// At least 1: the level of the compute node.
  int levels() const { return static_cast<int>(groups_.size()); }
  const std::vector<std::vector<int>>& groups(int level) const { return groups_[static_cast<std::size_t>(level)]; }
  int group(int level, int rank) const {
    return group_of_[static_cast<std::size_t>(level)][static_cast<std::size_t>(rank)];
  }
  /// 0 for a rank and itself, 1 within an innermost group, .., `levels()` for ranks that share only the node.
  int distance(int a, int b) const;
  /// Are the groups of every level runs of consecutive ranks?
  bool in_rank_order() const;
  /// Such as "2x4", where all groups of a level are of one size; else the sizes of the innermost ones: "3+2".
  std::string text() const;

 private:
  void add_level(const std::vector<int>& group_of);

  std::vector<std::vector<std::vector<int>>> groups_;  ///< [level][group]: its ranks, ascending
  std::vector<std::vector<int>> group_of_;             ///< [level][rank]
};

}  // namespace isohalo
