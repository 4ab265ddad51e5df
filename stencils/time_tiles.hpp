#pragma once
/// Several steps on a block in tiles that stay in cache: time skewing on the two arrays of a field, old and new.
///
/// A sweep reads every cell from memory and writes it back; k sweeps move all data k times. Here the block is cut
/// into tiles, and each tile makes all k steps before the next one begins, so data travels about once per k steps.
/// Step q of a tile works on cells that lie q skews lower than those of its first step: so all that it reads has
/// been written, by this tile or by an earlier one, and no cell is updated twice.
///
/// Two arrays in turns are enough. In a dimension with tiles of w cells and a skew of s cells a step, cell c takes
/// step q in tile floor((c + q s) / w). What step q reads lies at most s cells away: step q - 1 was there in this
/// tile or an earlier one, and step q + 1, which puts the next value into the same place, comes in this tile or a
/// later one. That holds in each dimension, so for tiles in the order of their indices; a stencil that reaches
/// further than s on either side would break it. Fields on faces and in cells that take turns need but one array
/// (StaggeredSolver::update_in). (Wonnacott, "Using time skewing to eliminate idle time due to
/// memory bandwidth and network limitations", 2000.)
///
/// What it should cost: V cells of all arrays fit the second-level cache. A tile brings in w_j + k s_j cells per
/// dimension for k times w_j updates, so an update moves 1 / k of what all arrays of a cell hold, in and out, times
/// the product of (1 + k s_j / w_j) over the dimensions that are cut. 7 points of binary64, rows of 384 cells, 1
/// MiB and k = 8: w = 11, 32 / 8 bytes times 3.0; a sweep moves 24.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "datatypes/box.hpp"
#include "framework/schedule/fastest_way.hpp"

namespace isohalo {

/// How a block is cut for several steps: tiles of `extents` cells, which begin `skew` cells lower with each step.
template <int D>
struct TimeTiles {
  Index<D> extents{};
  Index<D> skew{};
  Index<D> unit = index_of<D>(1);  ///< see in_units
  bool fetched = false;            ///< is what the next tile brings in fetched before its turn?

  /// The tiles for `steps` steps on `block`, by the model above. `reach`: how far a step reads, on the side where
  /// it reads further. `cell_bytes`: of a cell in all arrays that a step reads or writes. `line`: cells of a cache
  /// line; rows are cut and skewed in whole lines. `cache`: bytes. `rows`: so many of dimension D - 2 are updated
  /// together; tiles that do not have all have a multiple of them. Local.
  static TimeTiles chosen(const Index<D>& block, const Index<D>& reach, std::int64_t cell_bytes, std::int64_t line,
                          int steps, std::int64_t cache, int rows);
  /// Small ones that are thin in the last dimension which is cut: there a tile follows the other, and finds in
  /// cache what that one has brought in. So these bring in little twice, and what a step reads the one before has
  /// just written. `cache`: bytes of about one step, of each of so many threads. Local.
  static TimeTiles thin(const Index<D>& block, const Index<D>& reach, std::int64_t cell_bytes, std::int64_t line,
                        int steps, std::int64_t cache, int threads, int rows);

  /// A dimension in which a tile is as long as the block needs no second one for what the skew pushes out of the
  /// first.
  void keep_whole(const Index<D>& block, const Index<D>& reach, int steps) {
    for (int j = 0; j < D; ++j)
      if (extents[j] >= block[j]) extents[j] = block[j] + (2 * reach[j] + skew[j]) * steps;
  }

  /// The same, but the parts of the last step begin and end at multiples of so many cells, or where the region
  /// does.
  TimeTiles in_units(const Index<D>& cells) const {
    TimeTiles t = *this;
    t.unit = cells;
    for (int j = 0; j < D; ++j) t.extents[j] = (extents[j] + cells[j] - 1) / cells[j] * cells[j];
    return t;
  }

  /// For people.
  std::string text(const Index<D>& block) const {
    std::string text;
    for (int j = 0; j < D; ++j) text += (j > 0 ? " x " : "") + std::to_string(std::min(extents[j], block[j]));
    return "in tiles of " + text + " cells" + (fetched ? ", fetched ahead" : "");
  }

  /// Elements from a cell of step q, of so many, to what is fetched while it is updated, for the first step of the
  /// next tile; 0: nothing. That is done half way, by when this tile has all that it brings in, and in an even
  /// step, which reads the array that the first one reads. `region`: of the first step.
  std::int64_t next(int q, int steps, const Box<D>& region, const Index<D>& stride) const {
    if (!fetched || q != steps / 4 * 2) return 0;
    for (int j = D - 1; j >= 0; --j) {
      if (region.extent(j) <= extents[j]) continue;
      Index<D> away = skew;
      for (auto& x : away) x *= q;
      away[j] += extents[j] + skew[j];  // as far as it reads
      return offset_of<D>(away, Index<D>{}, stride);
    }
    return 0;
  }

  /// f(q, box) for the parts of `steps` steps in an order that is right: step q = 0, 1, .. in `box`, which lies in
  /// region(q). Step q reads no cells more than `skew` away from what it writes, and what step 0 reads is there.
  /// All cells of a region are in exactly one part.
  template <class Region, class F>
  void for_each_part(int steps, const Region& region, const F& f) const {
    // Where each cell lies, moved by its skew: in this frame tiles stand still.
    Box<D> frame = region(0);
    for (int q = 1; q < steps; ++q) {
      const Box<D> moved = in_frame(region(q), q);
      for (int j = 0; j < D; ++j) {
        frame.low[j] = std::min(frame.low[j], moved.low[j]);
        frame.high[j] = std::max(frame.high[j], moved.high[j]);
      }
    }
    for (int j = 0; j < D; ++j) {
      const std::int64_t of_last = frame.low[j] - (steps - 1) * skew[j];  // where its first part would begin
      if (frame.extent(j) > extents[j]) frame.low[j] -= ((of_last % unit[j]) + unit[j]) % unit[j];
    }
    Box<D> tiles;  // of tiles, by their indices
    for (int j = 0; j < D; ++j) tiles.high[j] = (frame.extent(j) + extents[j] - 1) / extents[j];
    for_each_cell(tiles, [&](const Index<D>& index) {
      Box<D> tile;
      for (int j = 0; j < D; ++j) {
        tile.low[j] = frame.low[j] + index[j] * extents[j];
        tile.high[j] = tile.low[j] + extents[j];
      }
      for (int q = 0; q < steps; ++q) {
        const Box<D> part = in_frame(tile, -q).intersect(region(q));
        if (!part.empty()) f(q, part);
      }
    });
  }

 private:
  static TimeTiles skewed(const Index<D>& reach, std::int64_t line) {
    TimeTiles t;
    t.skew = reach;
    t.skew[D - 1] = (reach[D - 1] + line - 1) / line * line;
    return t;
  }
  Box<D> in_frame(const Box<D>& b, int q) const {
    Index<D> by = skew;
    for (auto& x : by) x *= q;
    return b.shifted(by);
  }
};

/// Tiles that fill the second-level cache or a quarter of it, or thin ones: more of what smaller ones bring in lies
/// around them, but less is far away from the core, and other programs, too, have a share of that cache. Thin ones
/// that are fetched ahead may be larger than it, where the next cache is fast. Which are the fastest is tried out,
/// in whole blocks of steps, those with a change sum apart. Each rank decides for itself, but all after the same
/// step, since a trial of depths does not count these: all ranks have as many sizes.
template <int D>
struct TileSizes {
  std::vector<TimeTiles<D>> sizes;
  FastestWay ways[2] = {FastestWay::of_stretches(sizes.size(), 2), ways[0]};  ///< without, and with a change sum

  /// As TimeTiles::chosen; `threads` share a tile. `forced`: extents of the only size. Local.
  static TileSizes of(const Index<D>& block, const Index<D>& reach, std::int64_t cell_bytes, std::int64_t line,
                      int steps, int threads, int rows, const std::optional<Index<D>>& forced);

  const TimeTiles<D>& now(bool change) const { return sizes[ways[change].way()]; }
};

}  // namespace isohalo
