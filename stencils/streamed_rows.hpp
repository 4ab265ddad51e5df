#pragma once
/// Rows of cells that come from memory, line by line: what comes later is fetched, and new values go past the
/// caches.

#include <Kokkos_Macros.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

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

/// Sums of N cells, in registers.
template <int N>
class LineSums {
 public:
  /// -0, as -0 + x is x, whatever x is; or what is there.
  [[gnu::always_inline]] LineSums(const double* sums, bool first) {
    each<kVectors>([&](auto p) ISOHALO_INLINED {
      all_[p] = first ? Vector::filled(-0.0) : Vector::load(sums + p * Vector::kLanes);
    });
  }
  [[gnu::always_inline]] void add(const double* changes) {
    each<kVectors>([&](auto p) ISOHALO_INLINED { all_[p] = all_[p] + Vector::load(changes + p * Vector::kLanes); });
  }
  [[gnu::always_inline]] void store(double* sums) const {
    each<kVectors>([&](auto p) ISOHALO_INLINED { Vector::store(sums + p * Vector::kLanes, all_[p]); });
  }

 private:
  using Vector = VectorOf<double, kVectorBytes>;
  using V = typename Vector::Type;
  static constexpr std::size_t kVectors = N / Vector::kLanes;
  std::array<V, kVectors> all_;
};

/// So many lines of a row are fetched at a time: with one by one the rows' memory is touched in too many places by
/// turns, with more too much is on its way. (On an EPYC steps of 5 points from memory take 0.85 of the time that
/// one by one takes, of 7 points, two rows at a time, 0.82.)
inline constexpr std::int64_t kFetchedLines = 4;

/// Rows by a point kernel, whose point.at(from, x) gives the new values of the cell x elements behind the first
/// one: `how.rows` of them together, a cache line of each after the other, so that a line that several rows read
/// comes into the first-level cache once, as do the sums of their changes. All is
/// one loop: where rows go in pieces, a call for each, little is fetched while these begin and end. (On an EPYC
/// steps from memory take up to 0.7 of the time, with sums 0.7, see docs/performance.md.) Inlined by whoever is
/// [[gnu::flatten]], with all that it calls; GCC leaves calls in what is inlined by force.
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
  const bool past = how.past_caches, kept = !past;
  double* const sums = how.sums;
  std::array<const T*, W> before{};
  for (std::size_t f = 0; f < W && sums; ++f) before[f] = how.before[f] + place;

  for (std::int64_t k = 0, row = 0; k < rows.count; k += how.rows, row += how.rows * apart) {
    const std::int64_t count = std::min(how.rows, rows.count - k);
    const bool first = how.first && k == 0;
    for (std::int64_t x = 0; x < n; x += kFetchedLines * line) {
      const std::int64_t end = std::min(n, x + kFetchedLines * line);
      for (std::int64_t r = 0, at = row; r < count; ++r, at += apart)
        for (std::int64_t y = x; y < end; y += line) {
          for (std::size_t f = 0; f < R; ++f) fetch_line(from[f] + at + y + fetch[f]);
          for (std::size_t f = 0; f < W && kept; ++f) fetch_line(written[f] + at + y + later);
        }
      for (std::int64_t y = x; y < end; y += line) {
        LineSums<line> sum(sums + y, first || !sums);
        for (std::int64_t r = 0, at = row + y; r < count; ++r, at += apart) {
          alignas(64) T now[W][line];
          each<parts>([&](auto p) {
            ISOHALO_ONE_VECTOR
            for (int e = 0; e < lanes; ++e) {
              const int l = static_cast<int>(p) * lanes + e;
              const auto values = point.at(from, at + l);
              for (std::size_t f = 0; f < W; ++f) now[f][l] = static_cast<T>(values[f]);
            }
          });
          if (sums) {
            alignas(64) double changes[line];
            each<parts>([&](auto p) {
              ISOHALO_ONE_VECTOR
              for (int e = 0; e < lanes; ++e) {
                const int l = static_cast<int>(p) * lanes + e;
                double change = squared_change(now[0][l], before[0][at + l]);
                for (std::size_t f = 1; f < W; ++f) change = change + squared_change(now[f][l], before[f][at + l]);
                changes[l] = change;
              }
            });
            sum.add(changes);
          }
          for (std::size_t f = 0; f < W; ++f)
            past ? stream(written[f] + at, now[f])
                 : static_cast<void>(std::memcpy(written[f] + at, now[f], sizeof now[f]));
        }
        if (sums) sum.store(sums + y);
      }
    }
  }
}

/// The same of rows that are updated in place, as RowsInPlace does it, with sums of its terms or without. Of each
/// array a line is fetched.
template <bool Summed, class T, class Update>
inline void stream_in_place(const Update& update, std::span<T* const> in, std::span<T* const> out, std::int64_t at,
                            const CellRows& rows, const Streaming<T>& how) {
  constexpr int line = 64 / static_cast<int>(sizeof(T)), lanes = VectorOf<T, kVectorBytes>::kLanes;
  for (std::int64_t k = 0; k < rows.count; k += how.rows, at += how.rows * rows.apart) {
    const std::int64_t count = std::min(how.rows, rows.count - k);
    const bool first = how.first && k == 0;
    for (std::int64_t x = 0; x < rows.cells; x += kFetchedLines * line) {
      const std::int64_t end = std::min(rows.cells, x + kFetchedLines * line);
      for (std::int64_t r = 0, c = at + how.later; r < count; ++r, c += rows.apart)
        for (std::int64_t y = x; y < end; y += line) {
          for (const T* const p : in) fetch_line(p + c + y + how.lead);
          for (const T* const p : out) fetch_line(p + c + y);
        }
      for (std::int64_t y = x; y < end; y += line) {
        LineSums<line> sum(how.sums + y, first || !Summed);
        for (std::int64_t r = 0, c = at + y; r < count; ++r, c += rows.apart) {
          alignas(64) double changes[line];
          each<line / lanes>([&](auto p) {
            ISOHALO_ONE_VECTOR
            for (int e = 0; e < lanes; ++e) {
              const int l = static_cast<int>(p) * lanes + e;
              const auto values = update.values(c + l);
              if constexpr (Summed) changes[l] = update.term(c + l, values);
              update.store(c + l, values);
            }
          });
          if constexpr (Summed) sum.add(changes);
        }
        if constexpr (Summed) sum.store(how.sums + y);
      }
    }
  }
}

}  // namespace isohalo::detail
