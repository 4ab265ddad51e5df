#pragma once
/// Sweeps: a row kernel over a region, as one Kokkos kernel on the host's execution space.
///
/// Rows are swept whole with a vectorised inner loop; a plain MDRange sweep runs at half the speed.

#include <Kokkos_Core.hpp>
#include <type_traits>
#include <vector>

#include "framework/halo/array_ref.hpp"
#include "framework/reduce/tree_reducer.hpp"

namespace isohalo {

using SweepSpace = Kokkos::DefaultHostExecutionSpace;

/// A region cut into pieces of work: whole rows, a few of the second fastest dimension at a time. Made once per
/// region.
template <int D>
class SweepRegion {
 public:
  SweepRegion() = default;
  explicit SweepRegion(const std::vector<Box<D>>& boxes) {
    for (const auto& b : boxes) add(b);
  }
  const std::vector<Box<D>>& work() const { return work_; }
  std::int64_t size() const { return static_cast<std::int64_t>(work_.size()); }

 private:
  static constexpr std::int64_t kRows = 16;

  void add(const Box<D>& box) {
    if (box.empty()) return;
    if constexpr (D == 1) {
      work_.push_back(box);
    } else {
      Box<D> starts = box;  // one cell per piece of work
      starts.high[D - 1] = starts.low[D - 1] + 1;
      starts.low[D - 2] = 0;
      starts.high[D - 2] = (box.extent(D - 2) + kRows - 1) / kRows;
      for_each_cell(starts, [&](const Index<D>& i) {
        Box<D> piece = box;
        for (int j = 0; j < D - 2; ++j) piece.low[j] = i[j], piece.high[j] = i[j] + 1;
        piece.low[D - 2] = box.low[D - 2] + i[D - 2] * kRows;
        piece.high[D - 2] = std::min(piece.low[D - 2] + kRows, box.high[D - 2]);
        work_.push_back(piece);
      });
    }
  }

  std::vector<Box<D>> work_;
};

/// Runs a kernel on one row of n cells from `i` on; a kernel that takes it gets the index of the first cell as
/// well.
template <class T, int D, class Row>
void run_row(const Row& kernel, const ArrayRef<T, D>& in, const ArrayRef<T, D>& out, const Index<D>& i,
             std::int64_t n) {
  if constexpr (std::is_invocable_v<const Row&, const T*, T*, std::int64_t, const Index<D>&>)
    kernel(&in.at(i), &out.at(i), n, i);
  else
    kernel(&in.at(i), &out.at(i), n);
}

namespace detail {

/// The addresses of a cell in several arrays.
template <class P, class T, int D, std::size_t N>
std::array<P*, N> rows_at(const std::array<ArrayRef<T, D>, N>& arrays, const Index<D>& i) {
  std::array<P*, N> rows;
  for (std::size_t f = 0; f < N; ++f) rows[f] = &arrays[f].at(i);
  return rows;
}

}  // namespace detail

/// The same for a kernel of several arrays, which takes the rows of those that it reads and of those that it
/// writes.
template <class T, int D, std::size_t R, std::size_t W, class Row>
void run_row(const Row& kernel, const std::array<ArrayRef<T, D>, R>& in, const std::array<ArrayRef<T, D>, W>& out,
             const Index<D>& i, std::int64_t n) {
  kernel(detail::rows_at<const T>(in, i), detail::rows_at<T>(out, i), n);
}

/// f(i, n) for every row of n cells from `i` on of the region, or of one of so many `parts` of it, from several
/// threads. `label`: at most 15 characters, for longer ones Kokkos allocates memory at each call. Fences. Local.
template <int D, class F>
void for_each_row_of(const char* label, const SweepRegion<D>& region, const F& f, std::int64_t part = 0,
                     std::int64_t parts = 1) {
  const Box<D>* work = region.work().data();
  const std::int64_t n = region.size();
  Kokkos::parallel_for(label, Kokkos::RangePolicy<SweepSpace>(n * part / parts, n * (part + 1) / parts),
                       [=, &f](const std::int64_t w) {
                         const Box<D> piece = work[w];
                         for_each_row(piece, [&](const Index<D>& i) { f(i, piece.extent(D - 1)); });
                       });
  SweepSpace().fence();
}

/// out = kernel(in) on the region; an array each, or a std::array of several. All have the same owned box and
/// strides and hold all cells the kernel reads. With `parts` only one of that many parts of the region. Fences.
/// Local.
template <int D, class Reads, class Writes, class Row>
void sweep(const SweepRegion<D>& region, const Reads& in, const Writes& out, const Row& kernel,
           std::int64_t part = 0, std::int64_t parts = 1) {
  const auto row = [&kernel, in, out](const Index<D>& i, std::int64_t n) { run_row(kernel, in, out, i, n); };
  for_each_row_of("isohalo::sweep", region, row, part, parts);
}

namespace detail {

template <class T, int D>
const ArrayRef<T, D>& first_of(const ArrayRef<T, D>& a) {
  return a;
}
template <class T, int D, std::size_t N>
const ArrayRef<T, D>& first_of(const std::array<ArrayRef<T, D>, N>& all) {
  return all[0];
}

/// Elements from `p` on to where a cache line begins.
template <class T>
std::int64_t to_next_line(const T* p) {
  constexpr std::uintptr_t line = 64;
  return static_cast<std::int64_t>((line - reinterpret_cast<std::uintptr_t>(p) % line) % line / sizeof(T));
}

}  // namespace detail

/// out = kernel(in) on one box, as `sweep` on a region, for boxes that are in cache: the first cells of a row, up
/// to where a cache line begins in the first field, are a row of their own, so that vectors of the others do not
/// straddle lines. (7 points in the first-level cache of an EPYC: 5.2 against 3.5 G updates/s.) Fences. Local.
template <int D, class Reads, class Writes, class Row>
void sweep_box(const Box<D>& box, const Reads& in, const Writes& out, const Row& kernel) {
  constexpr int cut = D == 1 ? 0 : D - 2;  // among the workers
  const std::int64_t workers = std::min<std::int64_t>(box.extent(cut), std::max(1, SweepSpace().concurrency()));
  Kokkos::parallel_for("isohalo::tile", Kokkos::RangePolicy<SweepSpace>(0, workers),
                       [=, &kernel](const std::int64_t w) {
                         Box<D> piece = box;
                         piece.low[cut] = box.low[cut] + box.extent(cut) * w / workers;
                         piece.high[cut] = box.low[cut] + box.extent(cut) * (w + 1) / workers;
                         for_each_row(piece, [&](Index<D> i) {
                           const std::int64_t n = piece.extent(D - 1);
                           const std::int64_t head = detail::to_next_line(&detail::first_of(out).at(i));
                           if (head == 0 || n < 4 * head) return run_row(kernel, in, out, i, n);
                           run_row(kernel, in, out, i, head);
                           i[D - 1] += head;
                           run_row(kernel, in, out, i, n - head);
                         });
                       });
  SweepSpace().fence();
}

/// Sums over all cells of the grid, such as the squared changes of a step.
template <int D>
using CellSum = TreeReducer<double, D, Sum>;

/// Forms the tile values of a sum: `row(i, n)` as in TreeReducer::run_band, called once for each row of each band
/// of owned cells, from several threads. `sum.combine()` then gives the sum. Fences. Local.
template <int D, class RowValues>
void form_tile_values(const char* label, CellSum<D>& sum, std::vector<double>& scratch, const RowValues& row) {
  const std::int64_t bands = sum.bands();
  const std::int64_t workers = std::min<std::int64_t>(bands, std::max(1, SweepSpace().concurrency()));
  const std::int64_t each = sum.scratch_size();
  scratch.resize(static_cast<std::size_t>(workers * each));
  double* const space = scratch.data();
  Kokkos::parallel_for(label, Kokkos::RangePolicy<SweepSpace>(0, workers), [=, &sum, &row](const std::int64_t w) {
    for (std::int64_t b = bands * w / workers; b < bands * (w + 1) / workers; ++b)
      sum.run_band(b, space + w * each, row);
  });
  SweepSpace().fence();
}

namespace detail {

/// Fetches the cells right of a run of n, in the old field and for writing in the new one. A 2-D band has short
/// rows, 16 of them, and the processor's own prefetcher sees too little of each; with this the fused residual costs
/// 1 to 3 % instead of 15 % (5-point, 4096^2). In 3-D, with 16 rows from four planes, longer runs without it are
/// better (5 % against 20 %).
template <class T>
void prefetch_next_run(const T* before, T* after, std::int64_t n) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t x = n; x < 2 * n; x += line) {
    __builtin_prefetch(before + x, 0, 2);
    __builtin_prefetch(after + x, 1, 2);
  }
}

}  // namespace detail

/// As `sweep` over the owned cells, and forms the tile values of ((new - old) as double)^2 on the way, while the
/// rows are still in the first-level cache. `sum.combine()` then gives the change sum. Fences. Local.
template <class T, int D, class Row>
void sweep_with_change(CellSum<D>& sum, std::vector<double>& scratch, const ArrayRef<T, D>& in,
                       const ArrayRef<T, D>& out, const Row& kernel) {
  form_tile_values("isohalo::change", sum, scratch, [&](const Index<D>& i, std::int64_t n) {
    const T* const before = &in.at(i);
    T* const after = &out.at(i);
    if constexpr (D == 2) detail::prefetch_next_run(before, after, n);
    run_row(kernel, in, out, i, n);
    return [before, after](std::int64_t x) {
      const double change = static_cast<double>(after[x]) - static_cast<double>(before[x]);
      return change * change;
    };
  });
}

/// The same for several arrays: of a cell the sum of the squared changes `out` - `before`, in their order. `in` may
/// hold `before`, and `out` where the kernel reads no neighbors of it.
template <class T, int D, std::size_t R, std::size_t W, class Row>
void sweep_with_change(CellSum<D>& sum, std::vector<double>& scratch, const std::array<ArrayRef<T, D>, R>& in,
                       const std::array<ArrayRef<T, D>, W>& out, const std::array<ArrayRef<T, D>, W>& before,
                       const Row& kernel) {
  form_tile_values("isohalo::change", sum, scratch, [&](const Index<D>& i, std::int64_t n) {
    const auto old = detail::rows_at<const T>(before, i);
    const auto now = detail::rows_at<T>(out, i);
    kernel(detail::rows_at<const T>(in, i), now, n);
    return [old, now](std::int64_t x) {
      const auto square = [&](std::size_t f) {
        const double change = static_cast<double>(now[f][x]) - static_cast<double>(old[f][x]);
        return change * change;
      };
      double all = square(0);
      for (std::size_t f = 1; f < W; ++f) all = all + square(f);
      return all;
    };
  });
}

}  // namespace isohalo
