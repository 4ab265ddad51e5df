#pragma once
/// `--plan`: what a run on so many ranks would look like, without running it.

#include <string>
#include <vector>

#include "framework/run/run.hpp"
#include "framework/run/settings.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// Process grid, imbalance, halo depth, messages and bytes by face, edge and corner, memory, size of a checkpoint,
/// ranks that could be spared. A pure function: no ranks needed. Throws UsageError for what a run would refuse.
template <int D>
std::string plan_text(const GridSettings<D>& grid, const ParallelSettings<D>& parallel, const SolverModel<D>& model,
                      int ranks);

/// The exchange of one field by every pattern of messages that the stencil allows, for simulations. As above.
template <int D>
std::vector<HaloTraffic> halo_traffic(const GridSettings<D>& grid, const ParallelSettings<D>& parallel,
                                      const SolverModel<D>& model, int ranks);

}  // namespace isohalo
