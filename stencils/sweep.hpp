#pragma once
/// Loops over the rows of a region, as one Kokkos kernel on the host's execution space, and sums over them.
///
/// Rows are swept whole with a vectorised inner loop; a plain MDRange sweep runs at half the speed.

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <vector>

#include "framework/halo/host_threads.hpp"
#include "framework/halo/row_blocks.hpp"
#include "framework/halo/row_update.hpp"
#include "framework/reduce/tree_reducer.hpp"

namespace isohalo {

using SweepSpace = Kokkos::DefaultHostExecutionSpace;

/// A region cut into pieces of work: whole rows, a few of the second fastest dimension at a time; of one dimension
/// a few thousand cells. Made once per region.
template <int D>
class SweepRegion {
 public:
  struct Work {
    Box<D> piece;
    std::size_t block;  ///< which this one is of
  };

  SweepRegion() = default;
  /// `planes` and `cell_bytes` as in rows_of_block: by default those of one array of binary64 and of a star.
  explicit SweepRegion(const std::vector<Box<D>>& boxes, std::int64_t planes = 3, std::int64_t cell_bytes = 8) {
    for (const auto& b : boxes)
      if (!b.empty()) add(b, detail::rows_of_block<D>(b.extents(), planes, cell_bytes));
  }
  const std::vector<Work>& work() const { return work_; }
  /// That a piece of work is of: pieces that follow each other are its rows in index order.
  const Box<D>& block(const Work& of) const { return blocks_[of.block]; }
  std::int64_t size() const { return static_cast<std::int64_t>(work_.size()); }

 private:
  static constexpr std::int64_t kRows = detail::kRowsOfPiece, kCells = 4096;

  void add(const Box<D>& box, std::int64_t rows) {
    if constexpr (D == 1) {
      blocks_.push_back(box);
      for (std::int64_t x = box.low[0]; x < box.high[0]; x += kCells)
        work_.push_back({{{x}, {std::min(x + kCells, box.high[0])}}, blocks_.size() - 1});
    } else {
      // Each thread gets its layers of dimension 0, whose memory it has touched first.
      const std::int64_t threads = D < 3 ? 1 : std::min<std::int64_t>(host_threads(), box.extent(0));
      for (std::int64_t t = 0; t < threads; ++t) {
        Box<D> layers = box;
        layers.low[0] = box.low[0] + box.extent(0) * t / threads;
        layers.high[0] = box.low[0] + box.extent(0) * (t + 1) / threads;
        detail::for_each_block(layers, rows, [&](const Box<D>& block) { add_block(block); });
      }
    }
  }
  void add_block(const Box<D>& block) {
    blocks_.push_back(block);
    Box<D> starts = block;  // one cell per piece of work
    starts.high[D - 1] = starts.low[D - 1] + 1;
    starts.low[D - 2] = 0;
    starts.high[D - 2] = (block.extent(D - 2) + kRows - 1) / kRows;
    for_each_cell(starts, [&](const Index<D>& i) {
      Box<D> piece = block;
      for (int j = 0; j < D - 2; ++j) piece.low[j] = i[j], piece.high[j] = i[j] + 1;
      piece.low[D - 2] = block.low[D - 2] + i[D - 2] * kRows;
      piece.high[D - 2] = std::min(piece.low[D - 2] + kRows, block.high[D - 2]);
      work_.push_back({piece, blocks_.size() - 1});
    });
  }

  std::vector<Box<D>> blocks_;
  std::vector<Work> work_;
};

/// f(piece, block) for every piece of work of the region, or of one of so many `parts` of it, and the block of rows
/// that it is of, from several threads. Each thread calls end() after its last piece. `label`: at most 15
/// characters, for longer ones Kokkos allocates memory at each call. Fences. Local.
template <int D, class F, class End>
void for_each_piece_of(const char* label, const SweepRegion<D>& region, const F& f, std::int64_t part,
                       std::int64_t parts, const End& end) {
  const typename SweepRegion<D>::Work* work = region.work().data();
  const std::int64_t first = region.size() * part / parts, n = region.size() * (part + 1) / parts - first;
  const std::int64_t workers = std::min<std::int64_t>(n, host_threads());
  Kokkos::parallel_for(label, Kokkos::RangePolicy<SweepSpace>(0, workers),
                       [&, work, first, n, workers](const std::int64_t w) {
                         for (std::int64_t k = first + n * w / workers; k < first + n * (w + 1) / workers; ++k)
                           f(work[k].piece, region.block(work[k]));
                         end();
                       });
  SweepSpace().fence();
}

/// f(i, n) for every row of n cells from `i` on of the region, from several threads. Fences. Local.
template <int D, class F>
void for_each_row_of(const char* label, const SweepRegion<D>& region, const F& f) {
  const auto rows = [&f](const Box<D>& piece, const Box<D>&) {
    for_each_row(piece, [&](const Index<D>& i) { f(i, piece.extent(D - 1)); });
  };
  for_each_piece_of(label, region, rows, 0, 1, [] {});
}

/// f(piece) for a box in as many pieces as there are threads. Fences. Local.
template <int D, class F>
void for_each_share_of(const char* label, const Box<D>& box, const F& f) {
  constexpr int cut = D == 1 ? 0 : D - 2;  // among the workers
  const std::int64_t workers = std::min<std::int64_t>(box.extent(cut), host_threads());
  Kokkos::parallel_for(label, Kokkos::RangePolicy<SweepSpace>(0, workers), [=, &f](const std::int64_t w) {
    Box<D> piece = box;
    piece.low[cut] = box.low[cut] + box.extent(cut) * w / workers;
    piece.high[cut] = box.low[cut] + box.extent(cut) * (w + 1) / workers;
    f(piece);
  });
  SweepSpace().fence();
}

/// f(i, n) for every row of n cells of a box. Fences. Local.
template <int D, class F>
void for_each_row_of(const char* label, const Box<D>& box, const F& f) {
  for_each_share_of(label, box, [&f](const Box<D>& piece) {
    for_each_row(piece, [&](const Index<D>& i) { f(i, piece.extent(D - 1)); });
  });
}

namespace detail {

/// f(first, last, space) for ranges of `n` pieces of work, one for each thread, with scratch of `each` values that
/// begins where a cache line does. Fences.
template <class F>
void for_each_worker(const char* label, std::int64_t n, std::int64_t each, std::vector<double>& scratch,
                     const F& f) {
  const std::int64_t workers = std::min<std::int64_t>(n, host_threads());
  constexpr std::int64_t line = 64 / sizeof(double);
  each = (each + line - 1) / line * line;
  if (const auto size = static_cast<std::size_t>(workers * each + line); scratch.size() < size)
    scratch.resize(size);
  double* const space = scratch.data() + to_next_line(scratch.data());
  Kokkos::parallel_for(label, Kokkos::RangePolicy<SweepSpace>(0, workers), [=, &f](const std::int64_t w) {
    f(n * w / workers, n * (w + 1) / workers, space + w * each);
  });
  SweepSpace().fence();
}

}  // namespace detail

/// Sums over all cells of the grid, such as the squared changes of a step.
template <int D>
using CellSum = TreeReducer<double, D, Sum>;

/// Forms the tile values of a sum: `row(i, n)` or `row(i, n, later)` as in TreeReducer::run_band, called for the
/// rows of owned cells from several threads; then(band, space) after each band. `sum.combine()` then gives the sum.
/// Fences. Local.
template <int D, class RowValues, class Then>
void form_tile_values(const char* label, CellSum<D>& sum, std::vector<double>& scratch, const RowValues& row,
                      const Then& then) {
  const std::int64_t bands = sum.bands(), each = sum.scratch_size();
  detail::for_each_worker(label, bands, each, scratch, [&](std::int64_t first, std::int64_t last, double* space) {
    for (std::int64_t b = first; b < last; ++b) sum.run_band(b, space, row), then(b, space);
    detail::streaming_fence();  // of what rows have streamed
  });
}
template <int D, class RowValues>
void form_tile_values(const char* label, CellSum<D>& sum, std::vector<double>& scratch, const RowValues& row) {
  form_tile_values(label, sum, scratch, row, [](std::int64_t, double*) {});
}

/// The same for the tiles of a box of owned cells, as in TreeReducer::run_box.
template <int D, class RowValues>
void form_tile_values(const char* label, CellSum<D>& sum, std::vector<double>& scratch, const Box<D>& box,
                      const RowValues& row) {
  constexpr int cut = D == 1 ? 0 : D - 2;  // among the workers
  const std::int64_t height = sum.tile()[cut], first_tile = box.low[cut] / height;
  const std::int64_t tiles = (box.high[cut] + height - 1) / height - first_tile;
  detail::for_each_worker(label, tiles, sum.scratch_size(box), scratch,
                          [&](std::int64_t first, std::int64_t last, double* space) {
                            Box<D> piece = box;
                            piece.low[cut] = std::max(box.low[cut], (first_tile + first) * height);
                            piece.high[cut] = std::min(box.high[cut], (first_tile + last) * height);
                            if (!piece.empty()) sum.run_box(piece, space, row);
                          });
}

/// The same for the planes low .. high-1 of dimension 0, as in TreeReducer::run_planes: called for all owned planes
/// in order. Sums in progress stay in `lanes`. D > 1.
template <int D, class RowValues>
void form_tile_values_of_planes(const char* label, CellSum<D>& sum, std::vector<double>& lanes, std::int64_t low,
                                std::int64_t high, const RowValues& row) {
  constexpr int cut = D == 2 ? 1 : D - 2;  // among the workers
  Box<D> planes = sum.domain().owned();
  planes.low[0] = std::max(low, planes.low[0]);
  planes.high[0] = std::min(high, planes.high[0]);
  if (planes.empty()) return;
  const std::int64_t height = sum.tile()[cut], first_tile = planes.low[cut] / height;
  const std::int64_t tiles = (planes.high[cut] + height - 1) / height - first_tile;
  const std::int64_t workers = std::min<std::int64_t>(tiles, host_threads());
  Box<D> share = planes;  // the largest of a worker, in planes of one tile
  share.high[0] = share.low[0] + 1;
  share.low[cut] = 0;
  share.high[cut] = (tiles + workers - 1) / workers * height;
  const std::int64_t each = sum.scratch_size(share);
  detail::for_each_worker(label, tiles, each, lanes, [&](std::int64_t first, std::int64_t last, double* space) {
    Box<D> piece = planes;
    piece.low[cut] = std::max(planes.low[cut], (first_tile + first) * height);
    piece.high[cut] = std::min(planes.high[cut], (first_tile + last) * height);
    sum.run_planes(piece, space, row);
  });
}

}  // namespace isohalo
