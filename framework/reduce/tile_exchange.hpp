#pragma once
/// Bare cell values of tiles that rank borders cut, gathered by the tiles' owners.

#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/reduce/tiles.hpp"

namespace isohalo {

/// A part of a cut tile: the tile and the cells of it in one block. `offset` counts cells from the start of a
/// buffer.
template <int D>
struct TilePart {
  Index<D> tile;
  Box<D> cells;
  std::int64_t offset;
};

/// What travels between this rank and one other, in an order both know.
struct TileMessage {
  int peer;
  std::int64_t offset;  ///< in the buffer of all messages of this direction, in cells
  std::int64_t cells;
};

/// The geometry of the gather for one rank, compiled from the decomposition alone. No communication.
template <int D>
struct TileExchange {
  TileExchange() = default;  ///< of a rank without cells
  TileExchange(const Tiling<D>& tiling, const PerDim<int, D>& coords);

  /// This block's parts of cut tiles, whoever owns the tile; `offset` in `outgoing`.
  std::vector<TilePart<D>> local;
  std::vector<TileMessage> send;  ///< runs of `outgoing` for other owners
  std::int64_t outgoing_cells = 0;
  std::vector<TilePart<D>> arriving;  ///< parts that other blocks send; `offset` in `incoming`
  std::vector<TileMessage> receive;
  std::int64_t incoming_cells = 0;
  std::vector<Index<D>> owned_cut;  ///< cut tiles that this block owns
};

}  // namespace isohalo
