#pragma once
/// How blocks travel from their origin to their destinations: the part of a schedule that is the same on all ranks.
///
/// Sources: "Isomorphic, Sparse MPI-like Collective Communication Operations" (Träff, Lübbe, Rougier, Hunold 2015),
/// section 5, algorithms 1 to 3; allgather along a prefix tree: Träff, Hunold, "Message-combining algorithms for
/// isomorphic, sparse collective communication". Pure arithmetic, no communication.

#include <cstdint>
#include <span>
#include <vector>

#include "framework/domain/mesh.hpp"

namespace isohalo {

enum class Algorithm {
  automatic,   ///< chosen by the cost model
  direct,      ///< every block straight to its destination
  combining,   ///< along the dimensions, blocks with the same next step in one message
  logarithmic  ///< distances as sums of powers of two, blocks with the same next step in one message
};

/// "direct", "combining", ..
const char* to_string(Algorithm algorithm);

enum class Pattern {
  personal,  ///< alltoall: another block for each destination
  shared     ///< allgather: the same block for all, so common parts of the ways are travelled once
};

/// One leg of a way. All vectors are relative to the origin of the block that travels.
struct Hop {
  int step = 0;                         ///< index into NeighborSchedule::steps
  int parent = -1;                      ///< the hop before it, -1: starts at the origin
  std::vector<int> before, after;       ///< where the block is before and after the leg
  std::vector<int> carries;             ///< offsets whose destinations this leg serves, in list order
  std::vector<std::size_t> ends;        ///< which of `carries` (positions) are at their destination after it
  std::vector<std::int64_t> distances;  ///< ring schedule: the ring distance each of `carries` must have
};

/// The ways of all blocks of a neighborhood.
struct NeighborSchedule {
  struct Step {
    int stage = 0;
    std::vector<int> shift;  ///< from the sender to the receiver
  };
  Algorithm algorithm = Algorithm::direct;
  Pattern pattern = Pattern::personal;
  /// Distances are along the ring of ranks (a one-dimensional mesh), because the list has no order of its own.
  bool ring = false;
  int stages = 0;
  std::vector<Step> steps;  ///< grouped by stage
  std::vector<Hop> hops;    ///< parents before children
  std::vector<int> stays;   ///< zero offsets: a copy on the rank itself

  /// Messages of a rank that has all its neighbors: one per step, or per offset when each goes its own way.
  int rounds() const { return static_cast<int>(algorithm == Algorithm::direct ? hops.size() : steps.size()); }
  /// Blocks sent by a rank that has all its neighbors.
  std::int64_t volume() const { return static_cast<std::int64_t>(hops.size()); }
};

/// The schedule of `relative` (flat, s x d, dimension 0 of each first), independent of mesh and rank. Its rounds
/// and volume are those of docs/neighborhoods.md, "Three algorithms". Local.
NeighborSchedule plan_neighbor_schedule(std::span<const int> relative, int dimensions, Algorithm algorithm,
                                        Pattern pattern);

/// The logarithmic algorithm along the ring of all ranks (section 5.3, general neighborhoods): floor(log2 r) + 1
/// rounds, r the longest ring distance of a block on `mesh`, less the powers of two that no distance has. Ring
/// distances depend on the origin, so a rank derives what passes through it from coordinates.
NeighborSchedule plan_ring_schedule(std::span<const int> relative, const Mesh& mesh, Pattern pattern);

}  // namespace isohalo
