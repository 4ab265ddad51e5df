#pragma once
/// Reduction tiles: aligned blocks of the global grid whose values are the leaves of the reduction tree (version
/// 1).
///
/// A tile value adds rows left to right into lanes and then folds the lanes by halving strides, so that every
/// addition but the last few is vertical. The definition depends on global indices only and is public: it is part
/// of the format.

#include <cstdint>

#include "datatypes/box.hpp"
#include "framework/domain/decomposition.hpp"
#include "framework/reduce/operations.hpp"

namespace isohalo {

inline constexpr std::int64_t kTreeVersion = 1;

/// The tile of version 1, fixed per dimension count and recorded with every result that leaves the program.
template <int D>
constexpr Index<D> default_tile() {
  if constexpr (D == 1)
    return {256};
  else if constexpr (D == 2)
    return {16, 16};
  else if constexpr (D == 3)
    return {4, 4, 16};
  else
    return {2, 2, 4, 16};
}

/// Folds the `width` lanes that exist, of `tile_width` (a power of two), by halving strides. Result in lane 0.
template <class V, class Op>
V fold_lanes(V* lanes, std::int64_t width, std::int64_t tile_width, const Op& op) {
  for (std::int64_t h = tile_width / 2; h >= 1; h /= 2)
    for (std::int64_t l = 0; l < h && l + h < width; ++l) lanes[l] = combined(op, lanes[l], lanes[l + h]);
  return lanes[0];
}

namespace detail {

template <std::int64_t W, class V, class Op>
V fold_known(V* lanes, const Op& op) {
  if constexpr (W == 1) {
    return lanes[0];
  } else {
    for (std::int64_t l = 0; l < W / 2; ++l) lanes[l] = combined(op, lanes[l], lanes[l + W / 2]);
    return fold_known<W / 2>(lanes, op);
  }
}

}  // namespace detail

/// The same for a whole tile of a width known when compiled, a power of two >= 16, whose cells stay as they are:
/// the first three folds are done on the way from memory, the others in registers, so that memory is what it waits
/// for.
template <std::int64_t W, class V, class Op>
V fold_whole_tile(const V* cells, const Op& op) {
  constexpr std::int64_t e = W / 8;
  V lanes[static_cast<std::size_t>(e)];
  for (std::int64_t l = 0; l < e; ++l) {
    const V* const c = cells + l;
    const auto two = [&op](const V& a, const V& b) { return combined(op, a, b); };
    lanes[l] =
        two(two(two(c[0], c[4 * e]), two(c[2 * e], c[6 * e])), two(two(c[e], c[5 * e]), two(c[3 * e], c[7 * e])));
  }
  return detail::fold_known<e>(lanes, op);
}

/// The last tile of a box of them.
template <int D>
Index<D> last_of(const Box<D>& tiles) {
  Index<D> last = tiles.high;
  for (auto& t : last) --t;
  return last;
}

/// Value of one tile from its cells, given densely in index order; `lanes` is scratch for one row.
template <class V, int D, class Op>
V tile_value(const V* cells, const Index<D>& extents, std::int64_t tile_width, V* lanes, const Op& op) {
  const std::int64_t width = extents[D - 1];
  std::int64_t rows = 1;
  for (int j = 0; j < D - 1; ++j) rows *= extents[j];
  for (std::int64_t x = 0; x < width; ++x) lanes[x] = cells[x];
  for (std::int64_t r = 1; r < rows; ++r)
    for (std::int64_t x = 0; x < width; ++x) lanes[x] = combined(op, lanes[x], cells[r * width + x]);
  return fold_lanes(lanes, width, tile_width, op);
}

/// The tiles of a global grid and how one decomposition cuts them.
///
/// A tile belongs to the owner of its first cell. A tile that a rank border cuts is computed by its owner from the
/// bare cell values that the others send, so results never depend on the cuts.
template <int D>
class Tiling {
 public:
  /// Throws UsageError unless every extent of the tile is a power of two (at most 2^20).
  Tiling(const Decomposition<D>& decomposition, const Index<D>& tile);

  const Decomposition<D>& decomposition() const { return decomposition_; }
  const Index<D>& tile() const { return tile_; }
  /// The box of all tiles, in tile coordinates.
  Box<D> all() const;
  /// The cells of the tiles in `tiles`, clipped by the grid.
  Box<D> cells_of(const Box<D>& tiles) const;
  /// The tiles that the block at `coords` owns; may be empty.
  Box<D> owned_by(const PerDim<int, D>& coords) const;
  /// The tiles that have a cell in `cells`.
  Box<D> touching(const Box<D>& cells) const;
  PerDim<int, D> owner(const Index<D>& t) const;
  /// Does a rank border cut the tile?
  bool is_cut(const Index<D>& t) const;

 private:
  /// The first tile, in each dimension, that begins at the cell or behind it.
  Index<D> first_tile_from(const Index<D>& cell) const;

  Decomposition<D> decomposition_;
  Index<D> tile_;
};

}  // namespace isohalo
