#pragma once
/// The local half of a reduction: tile values of one block, those of cut tiles gathered from other blocks.

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/reduce/tile_exchange.hpp"
#include "framework/reduce/tile_lines.hpp"
#include "framework/reduce/tile_rows.hpp"
#include "framework/reduce/tiles.hpp"

namespace isohalo::detail {

/// Forms the tile values of one block of a decomposition, band by band. See `TreeReducer` for the public face.
template <class V, int D, class Op>
class TileReducer {
 public:
  /// `coords`: this rank's block, none if it owns no cell. `rank_of_block`: the rank that owns each block, in
  /// row-major order of the blocks. `tag`: one tag of its own. Local. Throws UsageError for too many tiles.
  TileReducer(const Communicator& comm, const Tiling<D>& tiling, const std::optional<PerDim<int, D>>& coords,
              const std::vector<int>& rank_of_block, Op op, int tag)
      : comm_(comm), op_(op), tiling_(tiling), tag_(tag) {
    if (!coords) return;
    owned_ = tiling_.decomposition().box(*coords);
    exchange_ = TileExchange<D>(tiling_, *coords);
    for (auto* list : {&exchange_.send, &exchange_.receive})
      for (auto& m : *list) m.peer = rank_of_block[static_cast<std::size_t>(m.peer)];
    tiles_ = tiling_.owned_by(*coords);
    local_tiles_ = tiling_.touching(owned_);
    in_band_.fill(1);
    const std::int64_t most = std::max<std::int64_t>(1, kLanes / tiling_.tile()[D - 1]),
                       row = local_tiles_.extent(D - 1);
    in_band_[D - 1] = std::min(most, std::max<std::int64_t>(1, row));
    if constexpr (D > 1) in_band_[D - 2] = std::max<std::int64_t>(1, most / in_band_[D - 1]);
    for (int j = 0; j < D; ++j) bands_.high[j] = (local_tiles_.extent(j) + in_band_[j] - 1) / in_band_[j];
    if (tiles_.cells() > std::numeric_limits<std::int32_t>::max())
      throw UsageError("a rank owns more than 2^31 reduction tiles: use more ranks");
    values_.resize(static_cast<std::size_t>(tiles_.empty() ? 0 : tiles_.cells()));
    if (!exchange_.local.empty()) compile_cut_tiles();
  }

  std::int64_t bands() const { return bands_.cells(); }
  Box<D> band_cells(std::int64_t band) const { return tiling_.cells_of(band_tiles(band)).intersect(owned_); }
  std::int64_t scratch_size() const {
    return tiling_.tile()[D - 1] * in_band_[D - 1] * (1 + (D > 1 ? in_band_[Y] : 1));
  }
  const Box<D>& owned() const { return owned_; }
  /// The tiles whose values this rank forms, in tile coordinates; may be empty.
  const Box<D>& tiles() const { return tiles_; }
  /// Their values, row-major.
  std::vector<V>& values() { return values_; }
  /// See `RowsBy`.
  template <class Row>
  RowsBy<V, D, Op, Row> rows_by(Row& row) const {
    return {row, op_};
  }

  void run_band(std::int64_t band, V* scratch, const RowsToAdd<V, D>& rows);

  std::int64_t scratch_size(const Box<D>& cells) const {
    return cells.extent(D - 1) * (1 + Lines::count(tiling_, cells));
  }
  void run_box(const Box<D>& box, V* scratch, const RowsToAdd<V, D>& rows);

  void run_planes(const Box<D>& planes, V* lanes, const RowsToAdd<V, D>& rows) requires(D > 1);

  /// All bands at once.
  void run_all(const RowsToAdd<V, D>& rows);

  /// All bands at once, from the values of this rank's cells as one dense array.
  void run_array(const V* data) requires(D == 1) {
    scratch_.resize(static_cast<std::size_t>(scratch_size()));
    const Box<D> cells = tiling_.cells_of(tiles_).intersect(owned_);
    if (!cells.empty()) fold_array(cells.low[0], cells.high[0], data + (cells.low[0] - owned_.low[0]));
    if (is_cut(owned_.low)) keep_cut(owned_.low, owned_.extent(0), [data](std::int64_t x) { return data[x]; });
  }

  /// Sends the bare cells of cut tiles to their owners. Does not wait.
  void start_gather() {
    const MPI_Comm comm = comm_.get();
    std::size_t k = 0;
    for (const auto& m : exchange_.receive)
      mpi_check(mpi::irecv(incoming_.data() + m.offset, m.cells * MPI_Count{sizeof(V)}, MPI_BYTE, m.peer, tag_,
                           comm, &requests_[k++]),
                "MPI_Irecv of cut tiles", comm);
    for (const auto& m : exchange_.send)
      mpi_check(mpi::isend(outgoing_.data() + m.offset, m.cells * MPI_Count{sizeof(V)}, MPI_BYTE, m.peer, tag_,
                           comm, &requests_[k++]),
                "MPI_Isend of cut tiles", comm);
  }

  /// True when all cut tiles have their values. Does not wait; to be called until true, once.
  bool test_gather() {
    if (!test_all(requests_, "gather of cut tiles", comm_.get())) return false;
    for (const auto& [tile, parts] : cut_tiles_) form_cut_tile(tile, parts);
    return true;
  }

 private:
  using Lines = TileLines<V, D>;
  static constexpr int Y = Lines::Y;

  /// Sums in progress of one band: with the rows at work they stay in the first-level cache, or nearly.
  static constexpr std::int64_t kLanes = 4096;

  /// Layers of bands (of 4 cells each, in 3-D): more would bring in fewer planes twice.
  static constexpr std::int64_t kLayers = 16;
  /// How many cells later those come that a band is told of, for it to fetch them, but for whole sets of four rows.
  static constexpr std::int64_t kAhead = 4096;

  /// For rows that fetch nothing: no other one comes later.
  static constexpr auto kThisOne = [](const Index<D>& i) { return i; };

  /// Whole tiles of this width are folded by code made for it: a seventh of the time of a 3-D pass.
  static constexpr std::int64_t kDefaultWidth = default_tile<D>()[D - 1];

  /// A part of a tile, and where its cells are.
  struct GatheredPart {
    const TilePart<D>* part;
    const V* cells;
  };

  template <class Later>
  void run_lines(const Lines& lines, const RowsToAdd<V, D>& rows, const Later& later) {
    add_rows(lines, lines.cells, rows, later);
    fold_band(lines);
  }
  /// Adds whole rows of the lines' cells, which may be four at a time where these are of the same tiles, none of
  /// them cut. `later(i)`: where the row begins that comes some thousand cells after the one that begins at i.
  template <class Later>
  void add_rows(const Lines& lines, const Box<D>& box, const RowsToAdd<V, D>& rows, const Later& later) {
    RowOfLines<V, D> at(lines);
    const std::int64_t n = lines.cells.extent(D - 1);
    bool cut = false;     // is one of the row's tiles?
    Box<D> planes = box;  // their first rows
    if (D > 1) planes.high[Y] = planes.low[Y] + 1;
    for_each_row(planes, [&](const Index<D>& first) {
      const std::int64_t end = D > 1 ? box.high[Y] : first[Y] + 1;
      for (Index<D> i = behind<D>(first, 0); i[Y] < end; ++i[Y]) {
        if (at.go_to(i)) cut = is_cut(i);
        if (cut) {
          rows.add(i, n, false, later(i), at.values(), true);
          const auto value = [known = at.values()](std::int64_t x) { return known[x]; };
          add_row(at.sums(), n, at.first(), value, op_);
          keep_cut(i, n, value);
        } else if (rows.add(i, n, lines.four_from(i, end), later(i), at.sums(), at.first())) {
          for (int k = 1; k < 4; ++k) later(i);  // as if each had been asked for
          at.pass(3), i[Y] += 3;
        }
      }
    });
  }

  /// In index order, but of three dimensions and more dimension D - 2 is the slowest one within kLayers layers of
  /// dimension 0: bands that follow each other have adjacent planes, which stencils then find in the second-level
  /// cache. A thread, or a few of them, still has layers of its own.
  Index<D> place_of_band(std::int64_t band) const {
    if constexpr (D < 3) {
      return index_of_linear(bands_, band);
    } else {
      const std::int64_t of_layer = bands_.cells() / bands_.extent(0), first = band / of_layer / kLayers * kLayers;
      Box<D> slice = bands_;  // of these layers
      slice.low[0] = first;
      slice.high[0] = std::min(first + kLayers, bands_.high[0]);
      slice.high[D - 2] = 1;
      band -= first * of_layer;
      Index<D> at = index_of_linear(slice, band % slice.cells());
      at[D - 2] = band / slice.cells();
      return at;
    }
  }
  Box<D> band_tiles(std::int64_t band) const {
    const Index<D> at = place_of_band(band);
    Box<D> t;
    for (int j = 0; j < D; ++j) {
      t.low[j] = local_tiles_.low[j] + at[j] * in_band_[j];
      t.high[j] = std::min(t.low[j] + in_band_[j], local_tiles_.high[j]);
    }
    return t;
  }

  void compile_cut_tiles() {
    outgoing_.resize(static_cast<std::size_t>(exchange_.outgoing_cells));
    incoming_.resize(static_cast<std::size_t>(exchange_.incoming_cells));
    requests_.assign(exchange_.send.size() + exchange_.receive.size(), MPI_REQUEST_NULL);
    for (const Index<D>& tile : exchange_.owned_cut) cut_tiles_[tile];
    const auto add = [&](const TilePart<D>& part, const std::vector<V>& buffer) {
      if (const auto owned = cut_tiles_.find(part.tile); owned != cut_tiles_.end())
        owned->second.push_back({&part, buffer.data() + part.offset});
    };
    for (const TilePart<D>& part : exchange_.arriving) add(part, incoming_);
    cut_parts_.resize(static_cast<std::size_t>(line_of_tiles().cells()));
    for (const TilePart<D>& part : exchange_.local) {
      add(part, outgoing_);
      cut_parts_[line_index(part.tile)].push_back(&part);
    }
    for (auto& parts : cut_parts_)
      std::sort(parts.begin(), parts.end(), [](const TilePart<D>* a, const TilePart<D>* b) {
        return a->cells.low[D - 1] < b->cells.low[D - 1];
      });
    std::int64_t most = 0;
    for (const auto& [tile, parts] : cut_tiles_) {
      const Box<D> cells = tiling_.cells_of(Box<D>::of_cell(tile));
      most = std::max(most, cells.cells() + cells.extent(D - 1));
    }
    tile_cells_.resize(static_cast<std::size_t>(most));
  }

  /// The first tile of each line of tiles.
  Box<D> line_of_tiles() const {
    Box<D> lines = local_tiles_;
    lines.high[D - 1] = lines.low[D - 1] + 1;
    return lines;
  }
  std::size_t line_index(Index<D> tile) const {
    tile[D - 1] = local_tiles_.low[D - 1];
    return static_cast<std::size_t>(linear_index(line_of_tiles(), tile));
  }

  /// Does a rank border cut a tile that the row from cell i on goes through?
  bool is_cut(const Index<D>& i) const { return !cut_parts_.empty() && !parts_at(i).empty(); }
  const std::vector<const TilePart<D>*>& parts_at(const Index<D>& i) const {
    Index<D> tile;
    for (int j = 0; j < D; ++j) tile[j] = i[j] / tiling_.tile()[j];
    return cut_parts_[line_index(tile)];
  }

  /// Keeps the bare values of cut tiles from the n cells from i on.
  template <class Value>
  void keep_cut(const Index<D>& i, std::int64_t n, const Value& value) {
    const auto& parts = parts_at(i);
    const std::int64_t low = i[D - 1], high = low + n;
    auto part = std::partition_point(parts.begin(), parts.end(),
                                     [&](const TilePart<D>* p) { return p->cells.high[D - 1] <= low; });
    for (; part != parts.end() && (*part)->cells.low[D - 1] < high; ++part) {
      const Box<D>& cells = (*part)->cells;
      Index<D> start = i;
      start[D - 1] = std::max(low, cells.low[D - 1]);
      V* const kept = outgoing_.data() + (*part)->offset + linear_index(cells, start);
      for (std::int64_t x = start[D - 1]; x < std::min(high, cells.high[D - 1]); ++x)
        kept[x - start[D - 1]] = value(x - low);
    }
  }

  /// Folds the lanes of the band's whole tiles. Cut tiles are overwritten later, by `test_gather`.
  void fold_band(const Lines& lines) {
    const Box<D>& cells = lines.cells;
    const std::int64_t width = tiling_.tile()[D - 1];
    Box<D> rows = tiling_.touching(cells);  // a cell for each line of tiles
    rows.high[D - 1] = rows.low[D - 1] + 1;
    for_each_cell(rows, [&](Index<D> t) {
      Index<D> i;
      for (int j = 0; j < D; ++j) i[j] = std::max(cells.low[j], t[j] * tiling_.tile()[j]);
      V* const line = lines.at(i);
      for (; t[D - 1] * width < cells.high[D - 1]; ++t[D - 1]) {
        if (!tiles_.contains(t)) continue;
        const std::int64_t low = std::max(t[D - 1] * width, cells.low[D - 1]);
        const std::int64_t high = std::min((t[D - 1] + 1) * width, cells.high[D - 1]);
        V* const lanes = line + (low - cells.low[D - 1]);
        values_[static_cast<std::size_t>(linear_index(tiles_, t))] =
            high - low == kDefaultWidth && width == kDefaultWidth ? fold_whole_tile<kDefaultWidth>(lanes, op_)
                                                                  : fold_lanes(lanes, high - low, width, op_);
      }
    });
  }

  /// The values of the tiles of cells low .. high-1, none of them cut, straight from the cells.
  void fold_array(std::int64_t low, std::int64_t high, const V* v) {
    const std::int64_t width = tiling_.tile()[0];
    V* value = values_.data() + (low / width - tiles_.low[0]);
    if (width == kDefaultWidth)
      for (; high - low >= width; low += width, v += width) *value++ = fold_whole_tile<kDefaultWidth>(v, op_);
    for (; low < high; low += width, v += width)
      *value++ = tile_value<V, 1>(v, {std::min(width, high - low)}, width, scratch_.data(), op_);
  }

  void form_cut_tile(const Index<D>& tile, const std::vector<GatheredPart>& parts) {
    const Box<D> cells = tiling_.cells_of(Box<D>::of_cell(tile));
    for (const GatheredPart& gathered : parts) {
      const Box<D>& held = gathered.part->cells;
      const V* from = gathered.cells;
      for_each_row(held, [&](const Index<D>& i) {
        std::copy_n(from, held.extent(D - 1), tile_cells_.data() + linear_index(cells, i));
        from += held.extent(D - 1);
      });
    }
    Index<D> extents;
    for (int j = 0; j < D; ++j) extents[j] = cells.extent(j);
    values_[static_cast<std::size_t>(linear_index(tiles_, tile))] = tile_value<V, D>(
        tile_cells_.data(), extents, tiling_.tile()[D - 1], tile_cells_.data() + cells.cells(), op_);
  }

  Communicator comm_;
  Op op_;
  Tiling<D> tiling_;
  int tag_;
  Box<D> owned_;
  TileExchange<D> exchange_;
  Box<D> tiles_;                                             // owned, in tile coordinates
  Box<D> local_tiles_;                                       // with a cell in this block
  Index<D> in_band_{};                                       // tiles of a band in each dimension
  Box<D> bands_;                                             // one cell per band
  std::vector<V> values_;                                    // of the owned tiles; row-major
  std::vector<std::vector<const TilePart<D>*>> cut_parts_;   // of this block, by line of tiles; empty: none is cut
  std::map<Index<D>, std::vector<GatheredPart>> cut_tiles_;  // owned
  std::vector<V> outgoing_, incoming_, scratch_;
  std::vector<V> tile_cells_;  // of a cut tile, and a row of scratch
  std::vector<MPI_Request> requests_;
};

// Not in the class, where whoever includes this would compile them again.
template <class V, int D, class Op>
void TileReducer<V, D, Op>::run_band(std::int64_t band, V* scratch, const RowsToAdd<V, D>& rows) {
  const Lines lines(tiling_, band_cells(band), scratch);
  Box<D> starts = lines.cells;  // of rows
  starts.high[D - 1] = starts.low[D - 1] + 1;
  const std::int64_t n = lines.cells.extent(D - 1), height = starts.cells(),
                     ahead = std::max<std::int64_t>(D > 1 ? 4 : 1, (kAhead + n - 1) / n);
  // The row to come, as if it were of this band, and how far away its own lies.
  Index<D> to_come = index_of_linear(starts, ahead % height), away{};
  const auto go_to_band = [&](std::int64_t b) {
    away = band_cells(std::min(b, bands() - 1)).low;
    for (int j = 0; j < D; ++j) away[j] -= starts.low[j];
  };
  std::int64_t later_band = band + ahead / height;
  go_to_band(later_band);
  run_lines(lines, rows, [&](const Index<D>&) {
    const Index<D> later = shifted<D>(to_come, away);
    int j = D - 2;
    for (; j >= 0; --j) {
      if (++to_come[j] < starts.high[j]) break;
      to_come[j] = starts.low[j];
    }
    if (j < 0) go_to_band(++later_band);
    return later;
  });
}

template <class V, int D, class Op>
void TileReducer<V, D, Op>::run_box(const Box<D>& box, V* scratch, const RowsToAdd<V, D>& rows) {
  Box<D> blocks = tiling_.touching(box);  // a cell each, but for the dimensions of a band
  for (int j = Y; j < D; ++j) blocks.high[j] = blocks.low[j] + 1;
  for_each_cell(blocks, [&](const Index<D>& t) {
    Box<D> cells = tiling_.cells_of(Box<D>::of_cell(t)).intersect(box);
    for (int j = Y; j < D; ++j) cells.low[j] = box.low[j], cells.high[j] = box.high[j];
    run_lines(Lines(tiling_, cells, scratch), rows, kThisOne);
  });
}

template <class V, int D, class Op>
void TileReducer<V, D, Op>::run_planes(const Box<D>& planes, V* lanes,
                                       const RowsToAdd<V, D>& rows) requires(D > 1) {
  Box<D> layer = planes, part = planes;  // of tiles, and what these planes have of it
  for (; part.low[0] < planes.high[0]; part.low[0] = part.high[0]) {
    const std::int64_t low = part.low[0] / tiling_.tile()[0] * tiling_.tile()[0];
    layer.low[0] = std::max(owned_.low[0], low);
    layer.high[0] = std::min(owned_.high[0], low + tiling_.tile()[0]);
    part.high[0] = std::min(planes.high[0], layer.high[0]);
    const Lines lines(tiling_, layer, lanes);
    add_rows(lines, part, rows, kThisOne);
    if (part.high[0] == layer.high[0]) fold_band(lines);
  }
}

template <class V, int D, class Op>
void TileReducer<V, D, Op>::run_all(const RowsToAdd<V, D>& rows) {
  scratch_.resize(static_cast<std::size_t>(scratch_size()));
  for (std::int64_t b = 0; b < bands(); ++b)
    run_lines(Lines(tiling_, band_cells(b), scratch_.data()), rows, kThisOne);
}

}  // namespace isohalo::detail
