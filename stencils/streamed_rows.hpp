#pragma once
/// Rows of cells that come from memory, line by line: what comes later is fetched, and new values go past the
/// caches.

#include <Kokkos_Macros.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "datatypes/fetch.hpp"
#include "datatypes/independent.hpp"
#include "datatypes/streaming_copy.hpp"
#include "framework/halo/row_kernel.hpp"
#include "stencils/vectors.hpp"

namespace isohalo::detail {

template <class T>
KOKKOS_FUNCTION double squared_change(T now, T before) {
  const double change = static_cast<double>(now) - static_cast<double>(before);
  return change * change;
}

/// f(0), .. f(N - 1), each with a constant, as `each` has it, but not inlined by force: into what is, nothing more
/// is inlined by [[gnu::flatten]], and the cells of a function of which a call is left are computed one by one. (A
/// step of gray_scott in 3-D took ten times as long.)
template <int N, class F>
inline void each_part(const F& f) {
  [&]<int... P>(std::integer_sequence<int, P...>) {
    (f(std::integral_constant<int, P>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}

/// Adds the changes of N cells to their sums.
template <int N>
[[gnu::always_inline]] inline void add_line(double* sums, const double* changes) {
  using Vector = VectorOf<double, kVectorBytes>;
  each<static_cast<std::size_t>(N / Vector::kLanes)>([&](auto p) ISOHALO_INLINED {
    constexpr int at = static_cast<int>(p) * Vector::kLanes;
    Vector::store(sums + at, Vector::load(sums + at) + Vector::load(changes + at));
  });
}

/// Rows by a point kernel, whose point.at(from, x) gives the new values of the cell x elements behind the first
/// one: `how.rows` of them together, `how.lines` cache lines of each after the other, so that a line that several
/// rows read comes into the first-level cache once. So many are fetched at a time, too: one by one the rows' memory
/// is touched in too many places by turns, with more too much is on its way. All is one function: where rows go in
/// pieces, a call for each, little is fetched while these begin and end; and nothing but cells is between two
/// lines of a row, since what a processor has before it, it can wait for. (On an EPYC steps from memory take up to
/// 0.7 of the time, with sums 0.7, see docs/performance.md.) Inlined by whoever is [[gnu::flatten]], with all that
/// it calls; GCC leaves calls in what is inlined by force.
///
/// `from`, `written`: addresses of the first row's first cell, which lies `place` behind those of `how`; `fetch`:
/// elements from a cell to what is fetched meanwhile, of each array of `from`.
template <class T, class Point, std::size_t R, std::size_t W>
inline void stream_rows(const Point& point, const std::array<const T*, R>& from, const std::array<T*, W>& written,
                        const std::array<std::int64_t, R>& fetch, const CellRows& rows, const Streaming<T>& how,
                        std::int64_t place) {
  constexpr int line = 64 / static_cast<int>(sizeof(T)), lanes = VectorOf<T, kVectorBytes>::kLanes;
  constexpr int parts = line / lanes;
  const std::int64_t n = rows.cells, apart = rows.apart, later = how.later;
  std::array<const T*, W> before{};
  for (std::size_t f = 0; f < W && how.sums; ++f) before[f] = how.before[f] + place;

  // Cells low .. high-1 from the first one on, whole lines of a row, whose sums begin at `sums`.
  const auto some = [&](auto summed, auto past, std::int64_t low, std::int64_t high, double* sums) {
    for (std::int64_t y = low; y < high; y += line) {
      alignas(64) T now[W][line];
      each_part<parts>([&](auto p) {
        ISOHALO_ONE_VECTOR
        for (int e = 0; e < lanes; ++e) {
          const int l = p * lanes + e;
          const auto values = point.at(from, y + l);
          for (std::size_t f = 0; f < W; ++f) now[f][l] = static_cast<T>(values[f]);
        }
      });
      if constexpr (summed) {
        alignas(64) double changes[line];
        each_part<parts>([&](auto p) {
          ISOHALO_ONE_VECTOR
          for (int e = 0; e < lanes; ++e) {
            const int l = p * lanes + e;
            double change = squared_change(now[0][l], before[0][y + l]);
            for (std::size_t f = 1; f < W; ++f) change = change + squared_change(now[f][l], before[f][y + l]);
            changes[l] = change;
          }
        });
        add_line<line>(sums + (y - low), changes);
      }
      for (std::size_t f = 0; f < W; ++f) {
        if constexpr (past)
          stream(written[f] + y, now[f]);
        else
          std::memcpy(written[f] + y, now[f], sizeof now[f]);
      }
    }
  };
  const auto all = [&](auto summed, auto past) {
    for (std::int64_t k = 0, row = 0; k < rows.count; k += how.rows, row += how.rows * apart) {
      const std::int64_t count = std::min(how.rows, rows.count - k);
      for (std::int64_t x = 0; x < n; x += how.lines * line) {
        const std::int64_t m = std::min(n - x, how.lines * line);
        for (std::int64_t r = 0, at = row + x; r < count; ++r, at += apart)
          for (std::int64_t y = at; y < at + m; y += line) {
            for (std::size_t f = 0; f < R; ++f) fetch_line(from[f] + y + fetch[f]);
            if constexpr (!past)
              for (std::size_t f = 0; f < W; ++f) fetch_line(written[f] + y + later);
          }
        double* const sums = summed ? how.sums + x : nullptr;
        if (summed && how.first && k == 0) std::fill_n(sums, m, -0.0);  // -0 + x is x, whatever x is
        for (std::int64_t r = 0, at = row + x; r < count; ++r, at += apart) some(summed, past, at, at + m, sums);
      }
    }
  };
  constexpr std::true_type yes;
  constexpr std::false_type no;
  if (how.sums)
    how.past_caches ? all(yes, yes) : all(yes, no);
  else
    how.past_caches ? all(no, yes) : all(no, no);
}

/// The same of rows that are updated in place, as RowsInPlace does it, with sums of its terms or without. Of each
/// array a line is fetched.
template <bool Summed, class T, class Update>
inline void stream_in_place(const Update& update, std::span<T* const> in, std::span<T* const> out, std::int64_t at,
                            const CellRows& rows, const Streaming<T>& how) {
  constexpr int line = 64 / static_cast<int>(sizeof(T)), lanes = VectorOf<T, kVectorBytes>::kLanes;
  for (std::int64_t k = 0; k < rows.count; k += how.rows, at += how.rows * rows.apart) {
    const std::int64_t count = std::min(how.rows, rows.count - k);
    for (std::int64_t x = 0; x < rows.cells; x += how.lines * line) {
      const std::int64_t m = std::min(rows.cells - x, how.lines * line);
      for (std::int64_t r = 0, c = at + x + how.later; r < count; ++r, c += rows.apart)
        for (std::int64_t y = c; y < c + m; y += line) {
          for (const T* const p : in) fetch_line(p + y + how.lead);
          for (const T* const p : out) fetch_line(p + y);
        }
      if (Summed && how.first && k == 0) std::fill_n(how.sums + x, m, -0.0);
      for (std::int64_t r = 0, c = at + x; r < count; ++r, c += rows.apart)
        for (std::int64_t y = 0; y < m; y += line) {
          alignas(64) double changes[line];
          each_part<line / lanes>([&](auto p) {
            ISOHALO_ONE_VECTOR
            for (int e = 0; e < lanes; ++e) {
              const int l = p * lanes + e;
              const auto values = update.values(c + y + l);
              if constexpr (Summed) changes[l] = update.term(c + y + l, values);
              update.store(c + y + l, values);
            }
          });
          if constexpr (Summed) add_line<line>(how.sums + x + y, changes);
        }
    }
  }
}

}  // namespace isohalo::detail
