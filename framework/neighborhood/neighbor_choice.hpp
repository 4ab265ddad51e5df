#pragma once
/// Which algorithm an isomorphic collective should use, and why.

#include <cstdint>
#include <string>
#include <vector>

#include "framework/neighborhood/isomorphic.hpp"
#include "framework/neighborhood/neighbor_schedule.hpp"

namespace isohalo {

/// The linear model of one message: latency_s + bytes * seconds_per_byte. The defaults, by which `automatic`
/// chooses, are of the order of a compute node or a fast network.
struct LinkCost {
  double latency_s = 1e-6;
  double seconds_per_byte = 2e-10;
};

/// What one algorithm costs for blocks of one size, on every rank alike (ranks at a border may have less to do).
struct AlgorithmFigures {
  Algorithm algorithm = Algorithm::direct;
  int rounds = 0;                  ///< distinct steps of the list
  std::int64_t messages = 0;       ///< a rank sends on this mesh: steps to one peer in one stage share a message
  std::int64_t volume_blocks = 0;  ///< blocks a rank sends
  double predicted_s = 0;          ///< by the model
};

struct NeighborChoice {
  Algorithm algorithm = Algorithm::direct;
  std::int64_t block_bytes = 0;
  std::vector<AlgorithmFigures> figures;  ///< of all candidates
  std::string reason;
};

/// The messages of a schedule on a mesh: steps of one stage that lead to the same rank on the torus count once,
/// steps off the mesh or back to the rank itself not at all. Equal on all ranks.
std::int64_t messages_on(const NeighborSchedule& schedule, const Mesh& mesh);

/// Figures of `schedule` for blocks of `block_bytes`.
AlgorithmFigures figures_of(const NeighborSchedule& schedule, const Mesh& mesh, std::int64_t block_bytes,
                            const LinkCost& link = {});

/// The cheapest of the candidates by the model; ties go to the first. `reason` says how far ahead.
NeighborChoice cheapest(std::vector<AlgorithmFigures> candidates, std::int64_t block_bytes);
}  // namespace isohalo
