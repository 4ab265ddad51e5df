#pragma once
/// Partial-result sets: values of tree nodes through any schedule. In each stage a rank sends the largest complete
/// nodes that it holds, takes those of others, drops what an ancestor covers and combines complete siblings.

#include <cstdint>
#include <vector>

#include "framework/reduce/reduce_program.hpp"
#include "framework/schedule/schedule.hpp"

namespace isohalo {

/// Appends what `rank` does to bring the root of the frontier tree to all ranks (`root` < 0) or to one.
/// `holders[n]`: the rank that holds node n at the beginning, -1 for none; nodes below one that is held are
/// ignored. Local.
///
/// To all: sets are idempotent: a rank may hear of a node twice, so disseminations are welcome; what a receiver is
/// known to hold is not sent. To one: only what that needs travels and is combined, each value once.
void append_partial_sets(ReduceProgram& program, const std::vector<FrontierNode>& nodes,
                         const std::vector<int>& holders, const Schedule& schedule, int rank, int root);

/// Appends the resolve stage: leaf values go to the ranks that `gather` names, gather[n] >= 0 for nodes that are to
/// be formed there, no two of them one below the other. Afterwards these ranks hold these nodes. Local.
void append_resolve(ReduceProgram& program, const std::vector<FrontierNode>& nodes, const std::vector<int>& gather,
                    int rank);

}  // namespace isohalo
