#pragma once
/// Where sums in progress are while a pass goes over cells.

#include <cstdint>

#include "framework/reduce/tiles.hpp"

namespace isohalo::detail {

/// A line of lanes, one for each cell of a row, for each line of tiles that cells touch; and one for the values of
/// a row.
template <class V, int D>
struct TileLines {
  static constexpr int Y = D > 1 ? D - 2 : 0;  ///< with the fastest dimension that of a band of tiles

  /// Lines of tiles that cells touch.
  static std::int64_t count(const Tiling<D>& tiling, const Box<D>& cells) {
    std::int64_t lines = 1;
    for (int j = 0; j < D - 1; ++j) lines *= tiles_along(tiling, cells, j);
    return lines;
  }

  /// `scratch`: a row of `of` for each line and one more.
  TileLines(const Tiling<D>& tiling, const Box<D>& of, V* scratch)
      : cells(of),
        lanes(scratch),
        values(scratch + count(tiling, of) * of.extent(D - 1)),
        height(D > 1 ? tiling.tile()[Y] : 1),
        tile(tiling.tile()) {
    for (int j = 0; j < D - 1; ++j) first_tile[j] = of.low[j] / tile[j], tiles[j] = tiles_along(tiling, of, j);
  }

  /// The lanes of the line of tiles that cell i is in.
  V* at(const Index<D>& i) const {
    std::int64_t line = 0;
    for (int j = 0; j < D - 1; ++j) line = line * tiles[j] + (i[j] / tile[j] - first_tile[j]);
    return lanes + line * cells.extent(D - 1);
  }
  /// Is the plane of row i, its place in all dimensions but the two fastest, the first one of its tiles?
  bool first_plane(const Index<D>& i) const {
    for (int j = 0; j < Y; ++j)
      if (i[j] != cells.low[j] && i[j] % tile[j] != 0) return false;
    return true;
  }
  /// Do four rows of the same tiles begin here, before row `end` of the plane?
  bool four_from(const Index<D>& i, std::int64_t end) const {
    return D > 1 && i[Y] % 4 == 0 && height % 4 == 0 && i[Y] + 4 <= end;
  }

  Box<D> cells;
  V *lanes, *values;
  std::int64_t height;
  Index<D> tile, first_tile{}, tiles{};

 private:
  static std::int64_t tiles_along(const Tiling<D>& tiling, const Box<D>& cells, int j) {
    return (cells.high[j] - 1) / tiling.tile()[j] - cells.low[j] / tiling.tile()[j] + 1;
  }
};

/// The row that a pass over lines has come to, without divisions in each.
template <class V, int D>
class RowOfLines {
 public:
  explicit RowOfLines(const TileLines<V, D>& lines) : lines_(lines) {}
  /// Any row, and from then on the next one in index order. Is it of other tiles than the one before?
  bool go_to(const Index<D>& i) {
    const bool plane = !sums_ || i[Y] == lines_.cells.low[Y];  // begins
    first_ = false;
    if (!plane && --left_ > 0) return false;
    const std::int64_t done = plane ? i[Y] % lines_.height : 0;  // rows of this line, by an earlier pass or by none
    if (plane) first_plane_ = lines_.first_plane(i);
    sums_ = plane ? lines_.at(i) : sums_ + lines_.cells.extent(D - 1);
    left_ = lines_.height - done;
    first_ = first_plane_ && (done == 0 || i[Y] == lines_.cells.low[Y]);
    return true;
  }
  /// So many more rows of its tiles are done.
  void pass(std::int64_t rows) { left_ -= rows; }
  /// The lanes of its line of tiles.
  V* sums() const { return sums_; }
  /// Is it the first row of its tiles?
  bool first() const { return first_; }
  /// Room for the values of a row.
  V* values() const { return lines_.values; }

 private:
  static constexpr int Y = TileLines<V, D>::Y;

  const TileLines<V, D>& lines_;
  V* sums_ = nullptr;
  std::int64_t left_ = 0;  ///< rows up to the next line, with this one
  bool first_plane_ = false, first_ = false;
};

}  // namespace isohalo::detail
