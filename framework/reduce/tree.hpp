#pragma once
/// The fixed reduction tree above the tiles, and the part of it that lies between ranks.
///
/// Source: Stelz 2022, "Core-Count Independent Reduce" (the fixed binary tree over global indices), generalised to
/// boxes of tiles in d dimensions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/reduce/tiles.hpp"

namespace isohalo {

/// Where a tree node (a box of more than one tile) is divided: dimension and first tile of the right half.
struct Split {
  int dimension;
  std::int64_t at;
};

/// Among the dimensions with more than one tile the one with the largest clipped extent in cells (ties: the
/// slowest), at the largest power of two strictly below its number of tiles.
template <int D>
Split split_of(const Tiling<D>& tiling, const Box<D>& node);

/// value[into] = value[into] op value[from].
struct Combination {
  std::int32_t into;
  std::int32_t from;
};

/// One node of the tree between ranks. Leaves are the *frontier*: maximal nodes whose tiles one rank owns.
struct FrontierNode {
  std::int32_t left = -1;  ///< -1 for a leaf
  std::int32_t right = -1;
  std::int32_t rank = -1;  ///< owner of a leaf
};

namespace detail {

/// Of a tree node's number: where it stands in a list.
constexpr std::size_t at(std::int32_t node) {
  return static_cast<std::size_t>(node);
}

}  // namespace detail

/// The tree of the global grid down to the frontier; node 0 is the root, nodes stand in tree order: a node, what is
/// below its left child, what is below its right child. Known to every rank from the decomposition alone, so that
/// only bare values ever travel.
template <int D>
struct FrontierTree {
  /// `rank_of_block`: the rank of each block of the tiling's decomposition, row-major.
  FrontierTree(const Tiling<D>& tiling, const std::vector<int>& rank_of_block);

  std::vector<FrontierNode> nodes;
  std::vector<Box<D>> tiles;  ///< of each node
};

/// The combinations that turn tile values (row-major over `tiles_held`) into the value of `node`, which ends up at
/// its first tile's place. Straight-line, in tree order.
template <int D>
void append_combines(const Tiling<D>& tiling, const Box<D>& tiles_held, const Box<D>& node,
                     std::vector<Combination>& out);

}  // namespace isohalo
