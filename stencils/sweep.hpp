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

/// A region cut into pieces of work: whole rows, a few of the second fastest dimension at a time; of one dimension
/// a few thousand cells. Made once per region.
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
  static constexpr std::int64_t kRows = 16, kCells = 4096;

  void add(const Box<D>& box) {
    if (box.empty()) return;
    if constexpr (D == 1) {
      for (std::int64_t x = box.low[0]; x < box.high[0]; x += kCells)
        work_.push_back({{x}, {std::min(x + kCells, box.high[0])}});
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

/// Whether a sweep fetches memory before it comes there, and how far behind a cell (in elements of the arrays) the
/// last one lies that its update reads. The processor's own prefetcher keeps too little on its way: with this a
/// sweep from memory took 0.9 of the time on an EPYC, and one with a change sum 0.6 to 0.7.
struct Fetch {
  bool ahead = false;
  std::int64_t lead = 0;
};

namespace detail {

template <class T, int D>
std::array<ArrayRef<T, D>, 1> all_of(const ArrayRef<T, D>& a) {
  return {a};
}
template <class T, int D, std::size_t N>
const std::array<ArrayRef<T, D>, N>& all_of(const std::array<ArrayRef<T, D>, N>& all) {
  return all;
}

/// The addresses of a cell in several arrays.
template <class P, class T, int D, std::size_t N>
std::array<P*, N> rows_at(const std::array<ArrayRef<T, D>, N>& arrays, const Index<D>& i) {
  std::array<P*, N> rows;
  for (std::size_t f = 0; f < N; ++f) rows[f] = &arrays[f].at(i);
  return rows;
}

// Inlined by force, as all that does nothing but call them: GCC takes a function that only fetches for one without
// effect, and leaves out its calls.
[[gnu::always_inline]] inline void fetch_to_read(const void* p) {
  __builtin_prefetch(p, 0, 2);
}
[[gnu::always_inline]] inline void fetch_to_write(const void* p) {
  __builtin_prefetch(p, 1, 2);
}

/// A row that a kernel sweeps, from cell i on: one array each that it reads and writes, or several.
template <class T, int D, class Row, std::size_t R, std::size_t W>
struct KernelRow {
  static constexpr std::int64_t kAhead = 32768 / static_cast<std::int64_t>(sizeof(T));  ///< cells; see Fetch
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kPiece = 8 * kLine;  ///< computed between two fetches

  KernelRow(const Row& row, const std::array<ArrayRef<T, D>, R>& reads, const std::array<ArrayRef<T, D>, W>& writes,
            const Index<D>& first)
      : kernel(row), in(rows_at<const T>(reads, first)), out(rows_at<T>(writes, first)), i(first) {}

  /// n cells from the x-th on. A kernel that takes it gets the index of the first one as well.
  void run(std::int64_t x, std::int64_t n) const {
    if constexpr (std::is_invocable_v<const Row&, const T*, T*, std::int64_t, const Index<D>&>) {
      Index<D> at = i;
      at[D - 1] += x;
      kernel(in[0] + x, out[0] + x, n, at);
    } else if constexpr (R == 1 && W == 1 && std::is_invocable_v<const Row&, const T*, T*, std::int64_t>) {
      kernel(in[0] + x, out[0] + x, n);
    } else {
      auto from = in;
      auto to = out;
      for (auto& p : from) p += x;
      for (auto& p : to) p += x;
      kernel(from, to, n);
    }
  }
  /// Fetches what lies `away` cells behind n cells from the x-th on, and for reading `lead` cells more.
  [[gnu::always_inline]] void fetch(std::int64_t x, std::int64_t n, std::int64_t away, std::int64_t lead) const {
    for (std::int64_t k = x + away; k < x + away + n; k += kLine) {
      for (const T* p : in) fetch_to_read(p + k + lead);
      for (T* p : out) fetch_to_write(p + k);
    }
  }

  const Row& kernel;
  std::array<const T*, R> in;
  std::array<T*, W> out;
  Index<D> i;
};

}  // namespace detail

/// Runs a kernel on one row of n cells from `i` on: an array each that it reads and writes, or a std::array of
/// several.
template <class T, int D, class Row>
void run_row(const Row& kernel, const ArrayRef<T, D>& in, const ArrayRef<T, D>& out, const Index<D>& i,
             std::int64_t n) {
  detail::KernelRow(kernel, detail::all_of(in), detail::all_of(out), i).run(0, n);
}
template <class T, int D, std::size_t R, std::size_t W, class Row>
void run_row(const Row& kernel, const std::array<ArrayRef<T, D>, R>& in, const std::array<ArrayRef<T, D>, W>& out,
             const Index<D>& i, std::int64_t n) {
  detail::KernelRow(kernel, in, out, i).run(0, n);
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
           const Fetch& how = {}, std::int64_t part = 0, std::int64_t parts = 1) {
  const auto row = [&kernel, in, out, how](const Index<D>& i, std::int64_t n) {
    const detail::KernelRow whole(kernel, detail::all_of(in), detail::all_of(out), i);
    if (!how.ahead) return whole.run(0, n);
    for (std::int64_t x = 0; x < n; x += whole.kPiece) {
      const std::int64_t m = std::min(whole.kPiece, n - x);
      whole.fetch(x, m, whole.kAhead, how.lead);
      whole.run(x, m);
    }
  };
  for_each_row_of("isohalo::sweep", region, row, part, parts);
}

namespace detail {

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
                           const std::int64_t head = detail::to_next_line(&detail::all_of(out)[0].at(i));
                           if (head == 0 || n < 4 * head) return run_row(kernel, in, out, i, n);
                           run_row(kernel, in, out, i, head);
                           i[D - 1] += head;
                           run_row(kernel, in, out, i, n - head);
                         });
                       });
  SweepSpace().fence();
}

namespace detail {

/// f(first, last, space) for ranges of `n` pieces of work, one for each thread, with scratch of `each` values.
/// Fences.
template <class F>
void for_each_worker(const char* label, std::int64_t n, std::int64_t each, std::vector<double>& scratch,
                     const F& f) {
  const std::int64_t workers = std::min<std::int64_t>(n, std::max(1, SweepSpace().concurrency()));
  if (const auto size = static_cast<std::size_t>(workers * each); scratch.size() < size) scratch.resize(size);
  double* const space = scratch.data();
  Kokkos::parallel_for(label, Kokkos::RangePolicy<SweepSpace>(0, workers), [=, &f](const std::int64_t w) {
    f(n * w / workers, n * (w + 1) / workers, space + w * each);
  });
  SweepSpace().fence();
}

}  // namespace detail

/// Sums over all cells of the grid, such as the squared changes of a step.
template <int D>
using CellSum = TreeReducer<double, D, Sum>;

/// What a row may give to `form_tile_values`: update(x, n) is called for pieces, and then value(x) of their cells.
template <class Update, class Value>
class UpdatedRow {
 public:
  UpdatedRow(const Update& update, const Value& value) : update_(update), value_(value) {}
  void prepare(std::int64_t x, std::int64_t n) const { update_(x, n); }
  double operator()(std::int64_t x) const { return value_(x); }

 private:
  Update update_;
  Value value_;
};

/// Forms the tile values of a sum: `row(i, n)` or `row(i, n, later)` as in TreeReducer::run_band, called for the
/// rows of owned cells from several threads. `sum.combine()` then gives the sum. Fences. Local.
template <int D, class RowValues>
void form_tile_values(const char* label, CellSum<D>& sum, std::vector<double>& scratch, const RowValues& row) {
  const std::int64_t bands = sum.bands(), each = sum.scratch_size();
  detail::for_each_worker(label, bands, each, scratch, [&](std::int64_t first, std::int64_t last, double* space) {
    for (std::int64_t b = first; b < last; ++b) sum.run_band(b, space, row);
  });
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

namespace detail {

/// Elements from cell i to cell `later`, in arrays with the strides of `a`.
template <class T, int D>
std::int64_t elements_to(const ArrayRef<T, D>& a, const Index<D>& i, const Index<D>& later) {
  std::int64_t away = 0;
  for (int j = 0; j < D; ++j) away += (later[j] - i[j]) * a.stride[j];
  return away;
}

/// The squared changes of a row from cell i on, by the arrays before and after; of several the sum in their order.
template <class T, std::size_t N>
struct SquaredChanges {
  template <int D>
  SquaredChanges(const std::array<ArrayRef<T, D>, N>& before, const std::array<ArrayRef<T, D>, N>& after,
                 const Index<D>& i)
      : old(rows_at<const T>(before, i)), now(rows_at<const T>(after, i)) {}

  double operator()(std::int64_t x) const {
    const auto square = [&](std::size_t f) {
      const double change = static_cast<double>(now[f][x]) - static_cast<double>(old[f][x]);
      return change * change;
    };
    double all = square(0);
    for (std::size_t f = 1; f < N; ++f) all = all + square(f);
    return all;
  }

  std::array<const T*, N> old, now;
};

template <class T, int D, std::size_t R, std::size_t W, class Row>
void sweep_with_change(CellSum<D>& sum, std::vector<double>& scratch, const std::array<ArrayRef<T, D>, R>& in,
                       const std::array<ArrayRef<T, D>, W>& out, const std::array<ArrayRef<T, D>, W>& before,
                       const Row& kernel, const Fetch& how) {
  form_tile_values("isohalo::change", sum, scratch, [&](const Index<D>& i, std::int64_t, const Index<D>& later) {
    const KernelRow row(kernel, in, out, i);
    const std::int64_t away = elements_to(out[0], i, later);
    return UpdatedRow(
        [row, how, away](std::int64_t x, std::int64_t n) {
          if (how.ahead) row.fetch(x, n, away, how.lead);
          row.run(x, n);
        },
        SquaredChanges(before, out, i));
  });
}

}  // namespace detail

/// As `sweep` over the owned cells, and forms the tile values of ((new - old) as double)^2 on the way, of several
/// arrays the sum in their order; old: in `before`, which `in` may hold. `sum.combine()` then gives the change sum.
/// `in` may hold `out` where the kernel reads no neighbors of it. Fences. Local.
template <int D, class Reads, class Writes, class Row>
void sweep_with_change(CellSum<D>& sum, std::vector<double>& scratch, const Reads& in, const Writes& out,
                       const Writes& before, const Row& kernel, const Fetch& how) {
  detail::sweep_with_change(sum, scratch, detail::all_of(in), detail::all_of(out), detail::all_of(before), kernel,
                            how);
}

/// Forms the tile values of the squared changes in one box of owned cells, which is in cache and begins and ends
/// where reduction tiles do or the block does. Fences. Local.
template <int D, class Writes>
void change_in_box(CellSum<D>& sum, std::vector<double>& scratch, const Box<D>& box, const Writes& out,
                   const Writes& before) {
  form_tile_values("isohalo::change", sum, scratch, box, [&](const Index<D>& i, std::int64_t) {
    return detail::SquaredChanges(detail::all_of(before), detail::all_of(out), i);
  });
}

}  // namespace isohalo
