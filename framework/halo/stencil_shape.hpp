#pragma once
/// Which cells one step of a stencil reads, and which cells several steps read: the geometry of deep halos.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "datatypes/box.hpp"
#include "datatypes/region.hpp"
#include "framework/domain/boundary_rules.hpp"
#include "framework/neighborhood/offsets.hpp"

namespace isohalo {

/// The part of the plane that exists: the domain's box, where it wraps, and where outside cells mirror inside ones.
/// Faces have a box of their own (docs/exchange.md).
template <int D>
struct BoundaryTopology {
  Box<D> global;
  PerDim<bool, D> periodic{};
  /// Sides whose outside cells read inside ones (Neumann, Dirichlet): then their mirror images are needed as well.
  PerDim<bool, D> mirror_low{}, mirror_high{};
  int face = -1;  ///< of faces: their dimension, in which the outermost ones lie on the mirrors

  /// Has the grid no outside cells?
  bool wraps() const { return std::find(periodic.begin(), periodic.end(), false) == periodic.end(); }
  /// The cells that exist, without an end where the domain wraps.
  Box<D> existing() const {
    Box<D> b = global;
    for (int j = 0; j < D; ++j)
      if (periodic[j]) b.low[j] = -Region<D>::no_limit, b.high[j] = Region<D>::no_limit;
    return b;
  }
};

/// The rules of a grid as the geometry of halos sees them.
template <int D>
BoundaryTopology<D> boundary_topology_of(const BoundaryRules<D>& rules, const Box<D>& global) {
  return {global, rules.periodic(), rules.mirror_low(), rules.mirror_high()};
}

/// The same of several fields that share a plan: sides mirror where they do for one of them.
template <int D>
BoundaryTopology<D> boundary_topology_of(std::span<const BoundaryRules<D>> fields, const Box<D>& global) {
  BoundaryTopology<D> around{global, fields.front().periodic(), {}, {}};
  for (const BoundaryRules<D>& rules : fields)
    for (int j = 0; j < D; ++j) {
      around.mirror_low[j] = around.mirror_low[j] || rules.low[j].mirrors();
      around.mirror_high[j] = around.mirror_high[j] || rules.high[j].mirrors();
    }
  return around;
}

/// The offsets that a stencil reads, known by name where they have one. Immutable; no MPI.
///
/// The zero offset always counts as read, so that any number of steps up to the depth may follow an exchange: the
/// cells needed for k steps are block + k (S with 0), "+" being the Minkowski sum.
template <int D>
class StencilShape {
 public:
  enum class Kind { moore, von_neumann, star, custom };

  static StencilShape moore(int radius);
  static StencilShape von_neumann(int radius);
  static StencilShape star(int radius);
  /// Any list, asymmetric ones included; recognised when it is one of the above. Throws UsageError for offsets
  /// beyond +-1000 cells.
  static StencilShape of(const Offsets<D>& offsets);

  Kind kind() const { return kind_; }
  int radius() const { return radius_; }  ///< largest |coordinate|
  const Offsets<D>& offsets() const { return offsets_; }
  /// "moore of radius 2", or the offsets: equal for shapes that need the same ghosts.
  std::string text() const;
  bool operator==(const StencilShape& other) const { return text() == other.text(); }
  /// Cells read below and above a cell in each dimension, in one step; never negative.
  const Index<D>& reach_low() const { return reach_low_; }
  const Index<D>& reach_high() const { return reach_high_; }

  /// Ghost layers below and above a block that `steps` steps may read. Where outside cells mirror inside ones both
  /// sides get the larger reach: beside a thin block the mirror image of a read can lie on the other side.
  std::array<Index<D>, 2> ghost_widths(int steps, const BoundaryTopology<D>& around) const;

  /// The cells that `steps` further steps on `block` need, the block included and clipped to the existing cells, as
  /// disjoint boxes whose rows are as long as they can be.
  std::vector<Box<D>> needed_boxes(const Box<D>& block, int steps, const BoundaryTopology<D>& around) const;

  /// The needed cells within `part`, which must lie on one side of the block in each dimension (side[j] = -1, 0,
  /// 1). Exactly one simplex prism for the named shapes, boxes for a custom list. `needed` = needed_boxes(block,
  /// steps, ..).
  std::vector<Region<D>> needed_in(const Box<D>& block, int steps, const Box<D>& part,
                                   const PerDim<std::int8_t, D>& side, const std::vector<Box<D>>& needed) const;

 private:
  StencilShape() = default;
  std::int64_t granule() const { return kind_ == Kind::star ? std::max(radius_, 1) : 1; }
  std::int64_t budget(int steps) const;
  /// The block and all that steps could reach.
  Box<D> reached(const Box<D>& block, int steps) const;
  std::vector<Box<D>> custom_boxes(const Box<D>& block, int steps, const BoundaryTopology<D>& around) const;

  Kind kind_ = Kind::custom;
  int radius_ = 0;
  Offsets<D> offsets_;
  Index<D> reach_low_{}, reach_high_{};
};

/// The ghosts that an array must have: those of `depth` steps of `shape`.
template <int D>
struct HaloNeed {
  StencilShape<D> shape;
  int depth = 1;
  bool operator==(const HaloNeed&) const = default;
};

}  // namespace isohalo
