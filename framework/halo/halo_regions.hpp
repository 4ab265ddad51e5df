#pragma once
/// Which ghost cells a block needs and who owns them. Pure geometry: the same on every rank, tested without MPI.

#include <vector>

#include "framework/domain/decomposition.hpp"
#include "framework/halo/stencil_shape.hpp"

namespace isohalo {

/// How ghost cells are cut into messages (docs/exchange.md).
enum class HaloPattern {
  direct,     ///< a message per region: up to 3^d - 1 of them, all at once
  coalesced,  ///< a message per rank, with all of its regions
  slabs,      ///< dimension after dimension, two neighbors each; named shapes only
};

/// Needed ghost cells that one rank owns. The region is in the receiver's unwrapped indices; the same cells in the
/// owner's block are `region` shifted by -shift.
template <int D>
struct HaloRegion {
  Region<D> region;
  PerDim<int, D> owner{};
  Index<D> shift{};
  int stage = 0;  ///< of an exchange by slabs; 0 otherwise
};

/// The ghosts that `steps` steps of `shape` need on every block. Refers to what it is made of.
template <int D>
struct HaloGeometry {
  const Decomposition<D>& blocks;
  const StencilShape<D>& shape;
  int steps;
  const BoundaryTopology<D>& around;

  /// Layers below and above a block.
  std::array<Index<D>, 2> widths() const { return shape.ghost_widths(steps, around); }

  /// All needed ghost cells of the block at `coords`, by owner, each once, in an order that every rank agrees on;
  /// no empty regions. Depths beyond one neighbor's block and any number of wraps are covered.
  ///
  /// For an exchange by slabs (docs/exchange.md): in stage j come those whose last coordinate outside the block is
  /// the j-th, from the rank that differs in that dimension alone. That rank has them: its own cells, or its ghosts
  /// of earlier stages. So `region` shifted by -shift may lie outside the owner's block in the dimensions before j.
  std::vector<HaloRegion<D>> regions(const PerDim<int, D>& coords,
                                     HaloPattern pattern = HaloPattern::coalesced) const;

  /// Coordinates of the blocks that may need cells of the block at `coords` (the block itself not excluded).
  std::vector<PerDim<int, D>> possible_receivers(const PerDim<int, D>& coords) const;
};

template <int D>
bool slabs_possible(const StencilShape<D>& shape) {
  return shape.kind() != StencilShape<D>::Kind::custom;
}

/// Throws UsageError when the shape reaches further beyond a non-periodic side than the grid has cells.
template <int D>
void refuse_reach_beyond_grid(const StencilShape<D>& shape, const BoundaryTopology<D>& around);

/// Images of the grid that the ghosts of so many stencil reaches touch, itself among them: each is a region of its
/// own in a schedule. A double, since there may be any number. Local.
template <int D>
double grid_images(const StencilShape<D>& shape, int reaches, const BoundaryTopology<D>& around);

}  // namespace isohalo
