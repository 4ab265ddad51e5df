#pragma once
/// The fixed reduction tree above the tiles, and the part of it that lies between ranks.
///
/// Source: Stelz 2022, "Core-Count Independent Reduce" (the fixed binary tree over global indices), generalised to
/// boxes of tiles in d dimensions.

#include <array>
#include <cstdint>
#include <vector>

#include "framework/reduce/tiles.hpp"

namespace isohalo {

/// Where a node (a box of more than one tile) is divided: dimension and first tile of the right half.
///
/// Among the dimensions with more than one tile the one with the largest clipped extent in cells (ties: the
/// slowest), at the largest power of two strictly below its number of tiles.
template <int D>
struct Split {
  int dimension;
  std::int64_t at;
};

template <int D>
Split<D> split_of(const Tiling<D>& tiling, const Box<D>& node);

/// value[into] = value[into] op value[from].
struct Combine {
  std::int32_t into;
  std::int32_t from;
};

/// One node of the tree between ranks. Leaves are the *frontier*: maximal nodes whose tiles one rank owns.
struct FrontierNode {
  std::int32_t left = -1;  ///< -1 for a leaf
  std::int32_t right = -1;
  std::int32_t rank = -1;  ///< owner of a leaf
};

/// The tree of the global grid down to the frontier; node 0 is the root, children follow their parent. Known to
/// every rank from the decomposition alone, so that only bare values ever travel.
template <int D>
class FrontierTree {
 public:
  explicit FrontierTree(const Tiling<D>& tiling);
  const std::vector<FrontierNode>& nodes() const { return nodes_; }
  /// Tiles of a leaf.
  const Box<D>& tiles(std::int32_t leaf) const { return tiles_[static_cast<std::size_t>(leaf)]; }

 private:
  std::int32_t build(const Tiling<D>& tiling, const Box<D>& node);
  std::vector<FrontierNode> nodes_;
  std::vector<Box<D>> tiles_;
};

/// The combinations that turn tile values (row-major over `tiles_held`) into the value of `node`, which ends up at
/// its first tile's place. Straight-line, in tree order.
template <int D>
void append_combines(const Tiling<D>& tiling, const Box<D>& tiles_held, const Box<D>& node,
                     std::vector<Combine>& out);

}  // namespace isohalo
