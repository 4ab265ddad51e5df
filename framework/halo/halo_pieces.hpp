#pragma once
/// Which ghost cells a block needs and who owns them. Pure geometry: the same on every rank, tested without MPI.

#include <array>
#include <vector>

#include "framework/domain/decomposition.hpp"
#include "framework/halo/stencil_shape.hpp"

namespace isohalo {

/// Needed ghost cells that one rank owns. The region is in the receiver's unwrapped indices; the same cells in the
/// owner's block are `region` shifted by -shift.
template <int D>
struct HaloPiece {
  Region<D> region;
  PerDim<int, D> owner{};
  Index<D> shift{};
};

/// All ghost cells of the block at `coords` that `steps` steps need, by owner, in an order that every rank agrees
/// on. Empty regions are left out, so a star of depth 2 has 18 pieces in 3-D, not 26. Depths beyond one neighbor's
/// block and periodic dimensions of one rank (any number of wraps) are covered.
template <int D>
std::vector<HaloPiece<D>> halo_pieces(const Decomposition<D>& decomposition, const PerDim<int, D>& coords,
                                      const StencilShape<D>& shape, int steps, const Surroundings<D>& around);

/// Coordinates of the blocks that may need cells of the block at `coords` (the block itself not excluded).
template <int D>
std::vector<PerDim<int, D>> possible_receivers(const Decomposition<D>& decomposition, const PerDim<int, D>& coords,
                                               const StencilShape<D>& shape, int steps,
                                               const Surroundings<D>& around);

/// The largest number of steps whose ghosts all lie in adjacent blocks (or in the block itself, wrapped).
/// 0 when not even one step's do; at most `limit`.
template <int D>
int deepest_adjacent(const Decomposition<D>& decomposition, const StencilShape<D>& shape, int limit,
                     const Surroundings<D>& around);

/// Throws UsageError, naming the depth that fits, when `steps` steps need ghosts from beyond an adjacent block.
template <int D>
void refuse_far_ghosts(const Decomposition<D>& decomposition, const StencilShape<D>& shape, int steps,
                       const Surroundings<D>& around);

/// Throws UsageError when the shape reaches further beyond a non-periodic side than the grid has cells.
template <int D>
void refuse_reach_beyond_grid(const StencilShape<D>& shape, const Surroundings<D>& around);

}  // namespace isohalo
