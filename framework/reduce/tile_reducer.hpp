#pragma once
/// The local half of a reduction: tile values of one block, those of cut tiles gathered from other blocks.

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/reduce/tile_exchange.hpp"
#include "framework/reduce/tiles.hpp"

/// Before a loop: its passes do not depend on each other, though the compiler cannot see it (the sums are in memory
/// of ours, the values elsewhere). Saves the comparison of addresses before each row.
#if defined(__clang__)
#define ISOHALO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ISOHALO_INDEPENDENT _Pragma("GCC ivdep")
#else
#define ISOHALO_INDEPENDENT
#endif

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
    run_length_ = std::max<std::int64_t>(1, kRun / tiling_.tile()[D - 1]);
    runs_ = local_tiles_;  // one cell per band
    runs_.low[D - 1] = 0;
    runs_.high[D - 1] = (local_tiles_.extent(D - 1) + run_length_ - 1) / run_length_;
    bands_ = runs_.cells();
    if (tiles_.cells() > std::numeric_limits<std::int32_t>::max())
      throw UsageError("a rank owns more than 2^31 reduction tiles: use more ranks");
    values_.resize(static_cast<std::size_t>(tiles_.empty() ? 0 : tiles_.cells()));
    if (!exchange_.local.empty()) compile_cut_tiles();
  }

  std::int64_t bands() const { return bands_; }
  Box<D> band_cells(std::int64_t band) const { return tiling_.cells_of(band_tiles(band)).intersect(owned_); }
  std::int64_t scratch_size() const { return 2 * run_length_ * tiling_.tile()[D - 1]; }
  const Box<D>& owned() const { return owned_; }
  /// The tiles whose values this rank forms, in tile coordinates; may be empty.
  const Box<D>& tiles() const { return tiles_; }
  /// Their values, row-major.
  std::vector<V>& values() { return values_; }

  template <class RowValues>
  void run_band(std::int64_t band, V* scratch, RowValues&& row) {
    const Box<D> cells = band_cells(band);
    const std::int64_t n = cells.extent(D - 1);
    V *const acc = scratch, *const line = scratch + n;
    const bool cut = is_cut(band);
    bool first = true;
    for_each_row(cells, [&](const Index<D>& i) {
      const auto value = row(i, n);
      if (cut) {  // the bare values are for others too
        for (std::int64_t x = 0; x < n; ++x) line[x] = value(x);
        add_row(acc, n, first, [line](std::int64_t x) { return line[x]; });
        keep_cut(band, i, line);
      } else {
        add_row(acc, n, first, value);
      }
      first = false;
    });
    fold_band(cells, acc);
  }

  /// All bands at once, rows in the order of memory over many bands: for a pass that does nothing else, which the
  /// short runs of single bands would keep from the speed of memory. Each lane still adds its rows in index order.
  /// `row` is called for up to four rows before the first of them is read.
  template <class RowValues>
  void run_all(RowValues&& row) {
    for (std::int64_t b = 0, last; b < bands_; b = last) {
      last = b + 1;
      if constexpr (D > 1) {
        last = end_of_lines(b);
        if (!any_cut(b, last)) {
          run_lines(b, last, row);
          continue;
        }
      }
      scratch_.resize(static_cast<std::size_t>(scratch_size()));
      for (std::int64_t k = b; k < last; ++k) run_band(k, scratch_.data(), row);
    }
  }

  /// All bands at once, from the values of this rank's cells as one dense array.
  void run_array(const V* data) requires(D == 1) {
    scratch_.resize(static_cast<std::size_t>(scratch_size()));
    for (std::int64_t b = 0, next; b < bands_; b = next) {
      next = b + 1;
      const std::int64_t low = band_cells(b).low[0];
      const V* const v = data + (low - owned_.low[0]);
      if (is_cut(b)) {
        run_band(b, scratch_.data(),
                 [v](const Index<D>&, std::int64_t) { return [v](std::int64_t x) { return v[x]; }; });
      } else {  // all up to the next cut at one go
        while (next < bands_ && !is_cut(next)) ++next;
        fold_array(low, band_cells(next - 1).high[0], v);
      }
    }
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
  static constexpr std::int64_t kRun = D == 2 ? 128 : 512;  // cells; measured, see sweep_with_change

  /// Sums in progress of one group of lines, in cells: they stay in the second-level cache.
  static constexpr std::int64_t kGroup = 16384;

  /// Whole tiles of this width are folded by code made for it: a seventh of the time of a 3-D pass.
  static constexpr std::int64_t kDefaultWidth = default_tile<D>()[D - 1];

  /// A part of a tile, and where its cells are.
  struct GatheredPart {
    const TilePart<D>* part;
    const V* cells;
  };

  Box<D> band_tiles(std::int64_t band) const {
    const Index<D> run = index_of_linear(runs_, band);
    Box<D> t;
    for (int j = 0; j < D - 1; ++j) t.low[j] = run[j], t.high[j] = run[j] + 1;
    t.low[D - 1] = local_tiles_.low[D - 1] + run[D - 1] * run_length_;
    t.high[D - 1] = std::min(t.low[D - 1] + run_length_, local_tiles_.high[D - 1]);
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
    cut_parts_.resize(static_cast<std::size_t>(bands_));
    for (const TilePart<D>& part : exchange_.local) {
      add(part, outgoing_);
      Index<D> run = part.tile;
      run[D - 1] = (run[D - 1] - local_tiles_.low[D - 1]) / run_length_;
      cut_parts_[static_cast<std::size_t>(linear_index(runs_, run))].push_back(&part);
    }
    const std::int64_t volume = box_of_shape<D>(tiling_.tile()).cells();
    if (!cut_tiles_.empty()) tile_cells_.resize(static_cast<std::size_t>(volume + tiling_.tile()[D - 1]));
  }

  /// Does a rank border cut a tile of the band?
  bool is_cut(std::int64_t band) const {
    return !cut_parts_.empty() && !cut_parts_[static_cast<std::size_t>(band)].empty();
  }

  /// Bands that share rows.
  std::int64_t bands_in_line() const { return runs_.extent(D - 1); }

  /// The end of a group that begins with band b: whole lines of tiles that differ in the last two dimensions only.
  std::int64_t end_of_lines(std::int64_t b) const requires(D > 1) {
    const std::int64_t in_plane = bands_in_line() * runs_.extent(D - 2);
    const std::int64_t lines = std::max<std::int64_t>(1, kGroup / owned_.extent(D - 1));
    return std::min((b / in_plane + 1) * in_plane, b + lines * bands_in_line());
  }

  bool any_cut(std::int64_t b, std::int64_t last) const {
    for (; b < last; ++b)
      if (is_cut(b)) return true;
    return false;
  }

  /// Whole lines of tiles, none of them cut.
  template <class RowValues>
  void run_lines(std::int64_t b, std::int64_t last, RowValues&& row) requires(D > 1) {
    constexpr int Y = D - 2;
    const std::int64_t in_line = bands_in_line();
    Box<D> cells = band_cells(b);
    const Box<D> end = band_cells(last - 1);
    cells.high[Y] = end.high[Y];
    cells.high[D - 1] = end.high[D - 1];
    const std::int64_t n = cells.extent(D - 1), height = tiling_.tile()[Y], first_line = cells.low[Y] / height;
    scratch_.resize(static_cast<std::size_t>((last - b) / in_line * n));
    std::int64_t done = 0;  // rows that a group of four has taken along
    for_each_row(cells, [&](const Index<D>& i) {
      if (done > 0) return void(--done);
      V* const acc = scratch_.data() + (i[Y] / height - first_line) * n;
      bool first = i[Y] == cells.low[Y] || i[Y] % height == 0;
      for (int j = 0; j < Y; ++j) first = first && i[j] == cells.low[j];
      const auto value = row(i, n);
      if (i[Y] % 4 == 0 && height % 4 == 0 && i[Y] + 4 <= cells.high[Y]) {  // sums stay in registers
        Index<D> k = i;
        const auto next = [&] { return ++k[Y], row(static_cast<const Index<D>&>(k), n); };
        const auto v1 = next(), v2 = next(), v3 = next();
        if (first) {
          ISOHALO_INDEPENDENT
          for (std::int64_t x = 0; x < n; ++x) acc[x] = op_(op_(op_(value(x), v1(x)), v2(x)), v3(x));
        } else {
          ISOHALO_INDEPENDENT
          for (std::int64_t x = 0; x < n; ++x) acc[x] = op_(op_(op_(op_(acc[x], value(x)), v1(x)), v2(x)), v3(x));
        }
        done = 3;
      } else {
        add_row(acc, n, first, value);
      }
    });
    for (std::int64_t k = b; k < last; ++k) {
      const Box<D> band = band_cells(k);
      fold_band(band, scratch_.data() + (k - b) / in_line * n + (band.low[D - 1] - cells.low[D - 1]));
    }
  }

  /// Adds a row to the sums in progress.
  template <class Value>
  void add_row(V* acc, std::int64_t n, bool first, const Value& value) const {
    if (first)
      for (std::int64_t x = 0; x < n; ++x) acc[x] = value(x);
    else
      for (std::int64_t x = 0; x < n; ++x) acc[x] = op_(acc[x], value(x));
  }

  /// Keeps the bare values of cut tiles from a row of a band that begins at cell i.
  void keep_cut(std::int64_t band, const Index<D>& i, const V* line) {
    for (const TilePart<D>* part : cut_parts_[static_cast<std::size_t>(band)]) {
      Index<D> start = i;
      start[D - 1] = part->cells.low[D - 1];
      std::copy_n(line + (start[D - 1] - i[D - 1]), part->cells.extent(D - 1),
                  outgoing_.data() + part->offset + linear_index(part->cells, start));
    }
  }

  /// Folds the lanes of the band's whole tiles. Cut tiles are overwritten later, by `test_gather`.
  void fold_band(const Box<D>& cells, V* acc) {
    Index<D> t;
    for (int j = 0; j < D; ++j) t[j] = cells.low[j] / tiling_.tile()[j];
    const std::int64_t width = tiling_.tile()[D - 1];
    for (; t[D - 1] * width < cells.high[D - 1]; ++t[D - 1]) {
      if (!tiles_.contains(t)) continue;
      const std::int64_t low = std::max(t[D - 1] * width, cells.low[D - 1]);
      const std::int64_t high = std::min((t[D - 1] + 1) * width, cells.high[D - 1]);
      V* const lanes = acc + (low - cells.low[D - 1]);
      values_[static_cast<std::size_t>(linear_index(tiles_, t))] =
          high - low == kDefaultWidth && width == kDefaultWidth ? fold_whole_tile<kDefaultWidth>(lanes, op_)
                                                                : fold_lanes(lanes, high - low, width, op_);
    }
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
    const Box<D> cells = tiling_.cells_of_tile(tile);
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
  Box<D> tiles_;                 // owned, in tile coordinates
  Box<D> local_tiles_;           // with a cell in this block
  std::int64_t run_length_ = 1;  // tiles in a band
  Box<D> runs_;                  // tile coordinates, with runs instead of tiles in the fastest dimension
  std::int64_t bands_ = 0;
  std::vector<V> values_;                                    // of the owned tiles; row-major
  std::vector<std::vector<const TilePart<D>*>> cut_parts_;   // of this block, by band; empty: none is cut
  std::map<Index<D>, std::vector<GatheredPart>> cut_tiles_;  // owned
  std::vector<V> outgoing_, incoming_, scratch_;
  std::vector<V> tile_cells_;  // of a cut tile, and a row of scratch
  std::vector<MPI_Request> requests_;
};

}  // namespace isohalo::detail
