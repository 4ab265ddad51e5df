#pragma once
/// Global reductions whose bits depend on the global grid only: not on ranks, cuts, threads or time.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/reduce/operations.hpp"
#include "framework/reduce/reduction.hpp"

namespace isohalo {

/// Reduces one value of type V per cell of the grid with the tree of version 1 (see `Tiling`, `split_of`).
///
/// V is any trivially copyable type (a number, a struct of several sums), Op any function of two values,
/// associative or not. Use: either `reduce(f)`, or in parts, fused into a sweep: `run_band()` for every band (in
/// any order, from any thread), then `combine()`, or `start()`, `test()`, `wait()`. May be used again and again;
/// only the first time takes memory.
template <class V, int D, class Op>
class TreeReducer {
 public:
  /// Collective. Throws UsageError, the same on all ranks, for a bad tile, or one that differs between ranks.
  explicit TreeReducer(const CartesianDomain<D>& domain, Op op = {}, const Index<D>& tile = default_tile<D>());

  TreeReducer(const TreeReducer&) = delete;
  TreeReducer& operator=(const TreeReducer&) = delete;

  /// How the values of the ranks come together; before the first reduction or between two. Collective. Throws
  /// UsageError on all ranks for options that do not fit or differ between ranks.
  void reduce_by(const ReductionOptions& options) { reduction_->reduce_by(options); }
  const ReductionOptions& options() const { return reduction_->options(); }
  /// The schedule in use, what chose it and by which times.
  ScheduleChoice choice() const { return reduction_->choice(); }

  const Index<D>& tile() const { return tile_; }
  const CartesianDomain<D>& domain() const { return domain_; }

  /// Bands of this rank: neighboring tiles in the two fastest dimensions, whole rows of the block where these are
  /// shorter than some thousand cells, so that memory is read in long stretches. A cell is in no earlier band than
  /// those before it in all dimensions are.
  std::int64_t bands() const { return reduction_->tiles().bands(); }
  /// The cells of a band in this block. Its rows are visited in index order.
  Box<D> band_cells(std::int64_t band) const { return reduction_->tiles().band_cells(band); }
  /// Scratch values that one caller of run_band needs.
  std::int64_t scratch_size() const { return reduction_->tiles().scratch_size(); }

  /// Forms the tile values of one band. `row(i, n)` is called for each row in index order (i: its first cell, n:
  /// its cells), for up to four rows before the first of them is read; it returns an object v with v(x) = the value
  /// of the row's x-th cell, x = 0 .. n-1, asked for once. Or it has v.add(sums, n, rows, first), which adds the
  /// values of the row's n cells, or with rows = 4, which v.takes_four() allows, those of four rows of dimension
  /// D - 2 from this one on, to sums[0] and on, row after row; `first`: those of the first row replace what is
  /// there. `row(i, n, later)` is told as well where about the row begins that comes some thousand cells later: to
  /// fetch it. Different bands may run at the same time with different scratch. Local.
  template <class Row>
  void run_band(std::int64_t band, V* scratch, Row&& row) {
    auto& tiles = reduction_->tiles();
    tiles.run_band(band, scratch, tiles.rows_by(row));
  }

  /// The same for the tiles of a box of this block, which begins and ends where tiles do or the block does. Boxes
  /// may run at the same time with different scratch.
  template <class Row>
  void run_box(const Box<D>& cells, V* scratch, Row&& row) {
    auto& tiles = reduction_->tiles();
    tiles.run_box(cells, scratch, tiles.rows_by(row));
  }
  std::int64_t scratch_size(const Box<D>& cells) const { return reduction_->tiles().scratch_size(cells); }

  /// The same plane by plane (D > 1): `planes` are cells of this block that follow those of the call before in
  /// dimension 0, and in the others begin and end where tiles do or the block does. Sums in progress stay in
  /// `lanes`, scratch_size(planes of one tile) values; tile values are formed with the last plane of a tile.
  template <class Row>
  void run_planes(const Box<D>& planes, V* lanes, Row&& row) requires(D > 1) {
    auto& tiles = reduction_->tiles();
    tiles.run_planes(planes, lanes, tiles.rows_by(row));
  }

  /// For tile values that are formed elsewhere, as by kernels of a device: the tiles whose values this rank forms,
  /// in tile coordinates, and these values, row-major. Those of tiles that a rank border cuts come with `combine`,
  /// from the cells that `run_box` has seen.
  const Box<D>& tiles() const { return reduction_->tiles().tiles(); }
  std::vector<V>& tile_values() { return reduction_->tiles().values(); }
  /// What `combine` does first with these values, in this order, unless the method is exact: value[into] =
  /// op(value[into], value[from]), `from` then being done with. Whoever does some of it takes it out here.
  std::vector<Combination>& combinations() { return reduction_->combinations(); }

  /// All bands at once. Not from several threads. Local.
  template <class Row>
  void run_all(Row&& row) {
    auto& tiles = reduction_->tiles();
    tiles.run_all(tiles.rows_by(row));
  }

  /// Combines the tile values of all ranks; the result has the same bits on all that get it (see
  /// `ReductionOptions::root`; elsewhere the return value means nothing). Collective.
  V combine() { return reduction_->combine(); }

  /// The same in parts: starts; goes on without waiting and tells whether this rank is done; waits. The tile values
  /// must stay as they are in between: no `run_band`. `start` is collective, the others local; it throws UsageError
  /// where one is in flight, `wait` where none was started. Once started a reduction goes on in every wait of this
  /// library, so several operations may be waited for in different orders on different ranks.
  void start() { reduction_->start(); }
  bool test() { return reduction_->test(); }
  V wait() { return reduction_->wait(); }

  /// Reduces value(i) over all cells, i the global index. Collective.
  template <class Value>
  V reduce(Value&& value) {
    reduction_->refuse_in_flight();
    run_all([&](const Index<D>& i, std::int64_t) {
      return [&value, i](std::int64_t x) {
        Index<D> cell = i;
        cell[D - 1] += x;
        return value(static_cast<const Index<D>&>(cell));
      };
    });
    return combine();
  }

  /// Values this rank contributes to a reduction.
  std::int64_t frontier_size() const { return reduction_->frontier_size(); }

 private:
  static Tiling<D> agreed_tiling(const CartesianDomain<D>& domain, const Index<D>& tile) {
    std::optional<Tiling<D>> tiling;
    const auto error = error_of([&] { tiling.emplace(domain.decomposition(), tile); });
    agree_same(domain.comm(), "TreeReducer",
               {{"domain", domain.text()},
                {"tile", text_of_list(tile)},
                {"type of a value", type_text(typeid(V))},
                {"operation", type_text(typeid(Op))}},
               error.get());
    return *tiling;
  }

  CartesianDomain<D> domain_;
  Index<D> tile_;
  std::unique_ptr<detail::Reduction<V, D, Op>> reduction_;
};

template <class V, int D, class Op>
TreeReducer<V, D, Op>::TreeReducer(const CartesianDomain<D>& domain, Op op, const Index<D>& tile)
    : domain_(domain), tile_(tile) {
  const Tiling<D> tiling = agreed_tiling(domain, tile);
  agreed(domain.comm(), [&] {  // one rank alone may lack the memory, and what follows may be collective
    reduction_ = std::make_unique<detail::Reduction<V, D, Op>>(domain.comm(), tiling, domain.coordinates(),
                                                               detail::all_ranks(domain.size()), op);
  });
}

// Sums of binary64 are compiled once.
#define ISOHALO_DECLARE(D)                                   \
  extern template class detail::TileReducer<double, D, Sum>; \
  extern template class detail::Reduction<double, D, Sum>;   \
  extern template class TreeReducer<double, D, Sum>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

}  // namespace isohalo
