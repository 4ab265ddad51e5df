#pragma once
/// Rows of cells by a weighted list of offsets, whatever the dimensions (weighted_row.hpp).

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "datatypes/box.hpp"
#include "datatypes/fetch.hpp"
#include "framework/halo/row_kernel.hpp"
#include "framework/schedule/stopwatch.hpp"
#include "stencils/streamed_rows.hpp"
#include "stencils/vectors.hpp"

namespace isohalo {

/// acc = w_0 u(i+o_0); acc = acc + w_1 u(i+o_1); ...; out = acc (docs/model.md, kind = "stencil"). Any number of
/// offsets.
///
/// By runs: terms that follow each other along the row (three of a box, five or nine of a star) read each vector
/// once and shift it in registers, where a load that straddles two cache lines costs as much as two; the sums of
/// several vectors stay in registers while the list is gone through once. Or in groups of nine terms with the sums
/// in memory. Or, where runs lie above each other, as in a box, four rows at a time, in cache eight: a vector that
/// is loaded serves up to three of them. Which is the fastest depends on the list, the rows and the processor, and
/// is tried out on rows in cache. (27 points on an EPYC: runs 0.8 of the time of groups in cache, 0.55 from memory;
/// in cache eight rows 0.82 of the time of four, which load a fifth more. On a Xeon, whose vectors of 64 bytes are
/// shifted by one of the two units that compute: 0.9 of it in rows of 64 cells, 1.05 in rows of 464; 9 points 1.2.
/// With 16 vectors of 32 bytes four rows take 1.4 times as long as groups, 9 points.)
template <class T, int Bytes = detail::kVectorBytes>
class WeightedTerms {
 public:
  /// `away`: elements to what the terms read. Rows are `apart`, or there is only one: 0. `by_runs`: forced, for
  /// rows that are updated one by one; then eight or four at a time wherever it can be.
  WeightedTerms(const std::vector<std::int64_t>& away, const std::vector<double>& weights, std::int64_t apart,
                std::optional<bool> by_runs)
      : at_(away), weight_(weights.begin(), weights.end()) {
    for (const std::int64_t at : at_)
      if (!runs_.empty() && at == runs_.back().at + runs_.back().terms && runs_.back().terms < kLongest)
        ++runs_.back().terms;
      else
        runs_.push_back({at, 1});
    find_stacks(apart);
    const std::size_t terms = at_.size(), following = terms - runs_.size();
    wide_ = 2 * following >= terms;
    if (runs_.back().terms == 1) runs_.push_back({0, 0});  // single terms have something behind them
    if (by_runs)
      by_runs_ = *by_runs;
    else if (following > 0 || four_)
      try_out(apart > 0 ? apart : kTried);
  }

  void run(const T* in, T* out, const CellRows& rows) const;
  /// At most, of those in cache.
  int rows_together() const { return eight_ ? kMostAtOnce : four_ ? kRowsAtOnce : 1; }
  /// A group alone, or four rows at a time.
  bool streams() const { return at_.size() <= kGroup || four_; }
  /// As RowKernel::stream.
  void stream(const T* in, T* out, std::int64_t at, const CellRows& rows, const Streaming<T>& how) const;
  /// One row, by runs or groups.
  void run_row(const T* in, T* out, std::int64_t n) const;

 private:
  template <std::size_t N, class F>
  [[gnu::always_inline]] static void each(const F& f) {
    detail::each<N>(f);
  }
  using Vector = detail::VectorOf<T, Bytes>;
  using V = typename Vector::Type;
  static constexpr int kLanes = Vector::kLanes;
  static constexpr int kLongest = std::min(kLanes + 1, 9);
  static constexpr int kRowsAtOnce = 4, kMostAtOnce = 8;
  static constexpr std::int64_t kLine = 64 / sizeof(T), kAhead = 4 * kLine;
  static constexpr std::int64_t kFollowed = 16;  ///< rows at a time, by the prefetchers of most processors
  static constexpr std::int64_t kShort = 6 * kLanes;
  static constexpr bool kUnrolled = Bytes == 64;  ///< nine weights need as many of 32 registers
  /// Terms with offsets at, at + 1, .. in memory.
  struct Run {
    std::int64_t at;
    int terms;
  };
  /// A run, or three of them alike, one above the other.
  struct Stack {
    std::int64_t at;
    int terms, height;
  };

  /// What is the fastest for rows of about so many cells: here it reads some in cache, as far behind the begin of a
  /// cache line as in arrays whose rows begin with one. Several groups take longer from memory than here. (27
  /// points, 256^3, a Xeon: 1.25 of the time of runs, which are no faster here.)
  void try_out(std::int64_t cells);

  /// Several rows at a time: of a row vectors have room in, where the next one is that far away.
  bool fits(const CellRows& rows) const { return rows.apart == apart_ && rows.cells >= kLanes; }
  bool near(const CellRows& rows) const { return rows.in_cache || rows.cells <= kShort; }
  /// Several rows at a time need lists of which stacks are a good part.
  void find_stacks(std::int64_t apart) {
    apart_ = apart;
    std::int64_t stacked = 0;
    for (std::size_t k = 0; k < runs_.size(); k += static_cast<std::size_t>(stacks_.back().height)) {
      const auto alike = [&](std::size_t j) {
        return apart > 0 && k + j < runs_.size() && runs_[k + j].terms == runs_[k].terms &&
               runs_[k + j].at == runs_[k].at + static_cast<std::int64_t>(j) * apart;
      };
      const Stack stack{runs_[k].at, runs_[k].terms, alike(1) && alike(2) ? 3 : 1};
      if (stack.height > 1) stacked += stack.height * stack.terms;
      rows_read_ += kRowsAtOnce + stack.height - 1;
      stacks_.push_back(stack);
    }
    four_ = eight_ = 2 * stacked >= static_cast<std::int64_t>(at_.size());
  }

  /// Blocks of M vectors from cell x on, as many as fit; and one that ends with the row, if most of it is left to
  /// be done (the rest is computed again). Returns where they end.
  template <int M>
  [[gnu::noinline]] std::int64_t blocks(const T* in, T* out, std::int64_t n, std::int64_t x) const {
    constexpr std::int64_t size = M * kLanes;
    if (n < size) return x;
    const Run *const first = runs_.data(), *const last = first + runs_.size();
    while (4 * (n - x) > 3 * size || (M == 1 && x < n)) {
      x = std::min(x, n - size);
      std::array<V, M> acc;
      each<M>([&](auto i) ISOHALO_INLINED { acc[i] = Vector::filled(-T(0)); });  // -0 + a is a, whatever a is
      const T* w = weight_.data();
      for (const Run* run = first; run != last; ++run) {
        for (; run->terms == 1; ++run, ++w) add_terms<1>(acc, in + x + run->at, w);
        add_run(acc, in + x + run->at, w, run->terms);
        w += run->terms;
      }
      each<M>([&](auto i) ISOHALO_INLINED { Vector::store(out + x + i * kLanes, acc[i]); });
      x += size;
    }
    return x;
  }
  /// R rows at a time from row k on, as many as fit. Returns where they end.
  template <int M, int R>
  std::int64_t rows_at_once(const T* in, T* out, const CellRows& rows, std::int64_t k) const {
    const std::int64_t apart = apart_;
    for (; k + R <= rows.count; k += R) {
      const T* const from = in + k * apart;
      T* const written = out + k * apart;
      const auto store = [=](std::int64_t x, int r, const V& v)
                             ISOHALO_INLINED { Vector::store(written + r * apart + x, v); };
      std::int64_t x = 0;
      if constexpr (M > 1) x = blocks_of_rows<M, R>(from, rows.cells, x, !rows.in_cache, store);
      blocks_of_rows<1, R>(from, rows.cells, x, false, store);
    }
    return k;
  }
  /// The same as `blocks` for R rows, each vector of theirs by store(cell, row, vector): each vector of what they
  /// read is loaded once for all of them, and every sum still gets its terms in the order of the list, since a
  /// stack goes through it row by row.
  template <int M, int R, class Store>
  [[gnu::noinline]] std::int64_t blocks_of_rows(const T* in, std::int64_t n, std::int64_t x, bool fetches,
                                                const Store& store) const {
    const std::int64_t apart = apart_;
    const Stack first = stacks_.front();
    if (kUnrolled && stacks_.size() == 1 && first.height == 3 && first.terms == 3) {  // its weights in registers
      std::array<V, 9> w;
      each<9>([&](auto k) ISOHALO_INLINED { w[k] = Vector::filled(weight_[k]); });
      return blocks_by<M, R>(in, n, x, fetches, store, [&](auto& acc, const T* u) ISOHALO_INLINED {
        add_stack<3, 3>(acc, u + first.at, apart, w, 3);
      });
    }
    return blocks_by<M, R>(in, n, x, fetches, store, [&](auto& acc, const T* u) ISOHALO_INLINED {
      const T* w = weight_.data();
      for (const Stack& stack : stacks_) {
        stack.height == 1               ? add_stack<1, 0>(acc, u + stack.at, apart, w, stack.terms)
        : stack.terms == 3 && kUnrolled ? add_stack<3, 3>(acc, u + stack.at, apart, w, 3)
                                        : add_stack<3, 0>(acc, u + stack.at, apart, w, stack.terms);
        w += stack.height * stack.terms;
      }
    });
  }
  /// add(sums, what a block reads): adds all terms.
  template <int M, int R, class Store, class Add>
  [[gnu::always_inline]] std::int64_t blocks_by(const T* in, std::int64_t n, std::int64_t x, bool fetches,
                                                const Store& store, const Add& add) const {
    constexpr std::int64_t size = M * kLanes;
    if (n < size) return x;
    while (4 * (n - x) > 3 * size || (M == 1 && x < n)) {
      x = std::min(x, n - size);
      std::array<std::array<V, M>, R> acc;
      each<R>([&](auto r)
                  ISOHALO_INLINED { each<M>([&](auto i) ISOHALO_INLINED { acc[r][i] = Vector::filled(-T(0)); }); });
      if (fetches && x + kAhead < n) fetch_rows<size>(in + x + kAhead);
      add(acc, in + x);
      each<R>([&](auto r) ISOHALO_INLINED {
        each<M>([&](auto i) ISOHALO_INLINED { store(x + i * kLanes, r, acc[r][i]); });
      });
      x += size;
    }
    return x;
  }
  /// `Terms`: how many a run has, said as a constant; or 0. w[k]: a weight, or it in all lanes.
  template <int Height, int Terms, std::size_t M, std::size_t R, class W>
  [[gnu::always_inline]] static void add_stack(std::array<std::array<V, M>, R>& acc, const T* u, std::int64_t apart,
                                               const W& w, int terms) {
    each<R + Height - 1>([&](auto y) ISOHALO_INLINED {
      const auto add = [&](auto t) ISOHALO_INLINED {
        std::array<V, M> v;
        each<M>([&](auto i) ISOHALO_INLINED { v[i] = Vector::load_once(u + y * apart + t + i * kLanes); });
        each<Height>([&](auto h) ISOHALO_INLINED {
          if constexpr (y >= h && y - h < R) {
            const auto weight = w[h * terms + t];
            each<M>([&](auto i) ISOHALO_INLINED { acc[y - h][i] = acc[y - h][i] + weight * v[i]; });
          }
        });
      };
      if constexpr (Terms > 0)
        each<Terms>(add);
      else
        for (int t = 0; t < terms; ++t) add(t);
    });
  }
  /// Into the first-level cache.
  template <std::int64_t Cells>
  [[gnu::always_inline]] void fetch_rows(const T* in) const {
    for (const Stack& stack : stacks_)
      for (int y = 0; y < kRowsAtOnce + stack.height - 1; ++y)
        for (std::int64_t x = 0; x < Cells; x += kLine) __builtin_prefetch(in + stack.at + y * apart_ + x, 0, 3);
  }

  template <std::size_t M>
  [[gnu::always_inline]] static void add_run(std::array<V, M>& acc, const T* u, const T* w, int terms) {
    switch (terms) {
      case 0:
        return;
      case 2:
        return add_terms<2>(acc, u, w);
      case 3:
        return add_terms<3>(acc, u, w);
      case 4:
        return add_terms<4>(acc, u, w);
      case 5:
        return add_terms<5>(acc, u, w);
      case 6:
        return add_terms<6>(acc, u, w);
      case 7:
        return add_terms<7>(acc, u, w);
      case 8:
        return add_terms<8>(acc, u, w);
      default:
        return add_terms<9>(acc, u, w);
    }
  }
  /// Terms at u, u + 1, .. of M vectors; no element is read but theirs.
  template <int Terms, std::size_t M>
  [[gnu::always_inline]] static void add_terms(std::array<V, M>& acc, const T* u, const T* w) {
    if constexpr (Terms <= kLongest) {
      std::array<V, M + 1> a;
      each<M>([&](auto i) ISOHALO_INLINED { a[i] = Vector::load(u + i * kLanes); });
      a[M] = Vector::load(u + M * kLanes + Terms - 1 - kLanes);  // up to the last element
      each<Terms>([&](auto s) ISOHALO_INLINED {
        each<M - 1>([&](auto i) ISOHALO_INLINED {
          acc[i] = acc[i] + w[s] * Vector::template shifted<s, 0>(a[i], a[i + 1]);
        });
        acc[M - 1] = acc[M - 1] + w[s] * Vector::template shifted<s, kLanes + 1 - Terms>(a[M - 1], a[M]);
      });
    }
  }
  void in_groups(const T* in, T* out, const CellRows& rows) const {
    if (at_.size() <= kGroup) return group(in, out, rows, 0);
    // Long rows in pieces that stay in the first-level cache while several groups of offsets pass over them.
    constexpr std::int64_t piece = 1024;
    for (std::int64_t row = 0; row < rows.count; ++row, in += rows.apart, out += rows.apart)
      for (std::int64_t x = 0; x < rows.cells; x += piece)
        for (std::size_t k = 0; k < at_.size(); k += kGroup)
          group(in + x, out + x, {std::min(piece, rows.cells - x)}, k);
  }
  void group(const T* in, T* out, const CellRows& rows, std::size_t first) const {
    const std::size_t terms = std::min(kGroup, at_.size() - first);
    dispatch(std::make_index_sequence<kGroup>{}, terms, in, out, rows, first);
  }
  template <std::size_t... N>
  void dispatch(std::index_sequence<N...>, std::size_t terms, const T* in, T* out, const CellRows& rows,
                std::size_t first) const {
    ((terms == N + 1 ? add_group<N + 1>(in, out, rows, first) : void()), ...);
  }
  template <std::size_t N>
  void add_group(const T* in, T* out, const CellRows& rows, std::size_t first) const {
    first == 0 ? add_group<N, true>(in, out, rows, first) : add_group<N, false>(in, out, rows, first);
  }
  template <std::size_t N, bool First>
  void add_group(const T* in, T* __restrict out, const CellRows& rows, std::size_t first) const {
    std::array<const T*, N> u;
    std::array<T, N> w;
    for (std::size_t k = 0; k < N; ++k) u[k] = in + at_[first + k], w[k] = weight_[first + k];
    for (std::int64_t row = 0; row < rows.count; ++row) {
      for (std::int64_t x = 0; x < rows.cells; ++x) {
        T acc = First ? w[0] * u[0][x] : out[x] + w[0] * u[0][x];
        for (std::size_t k = 1; k < N; ++k) acc = acc + w[k] * u[k][x];
        out[x] = acc;
      }
      for (const T*& p : u) p += rows.apart;
      out += rows.apart;
    }
  }

  /// Of N terms, which it knows without reading memory.
  template <std::size_t N>
  struct Terms {
    std::array<std::int64_t, N> away;
    std::array<T, N> weight;
    std::array<T, 1> at(const std::array<const T*, 1>& from, std::int64_t x) const {
      const T* const u = from[0] + x;
      T acc = weight[0] * u[away[0]];
      for (std::size_t k = 1; k < N; ++k) acc = acc + weight[k] * u[away[k]];
      return {acc};
    }
  };
  template <std::size_t... N>
  void stream_group(std::index_sequence<N...>, const T* in, T* out, std::int64_t at, const CellRows& rows,
                    const Streaming<T>& how) const {
    ((at_.size() == N + 1 ? stream_terms<N + 1>(in, out, at, rows, how) : void()), ...);
  }
  template <std::size_t N>
  [[gnu::flatten]] void stream_terms(const T* in, T* out, std::int64_t at, const CellRows& rows,
                                     const Streaming<T>& how) const {
    Terms<N> terms;
    std::copy_n(at_.begin(), N, terms.away.begin());
    std::copy_n(weight_.begin(), N, terms.weight.begin());
    detail::stream_rows<T>(terms, std::array<const T*, 1>{in + at}, std::array<T*, 1>{out + at},
                           std::array<std::int64_t, 1>{how.later + how.lead}, rows, how, at);
  }

  /// Four rows at a time, a line of each after the other; rows that are left one by one, not past the caches.
  void stream_stacks(const T* in, T* out, std::int64_t at, const CellRows& rows, const Streaming<T>& how) const {
    const T* const before = how.sums ? how.before[0] + at : nullptr;
    std::int64_t k = 0;
    const auto add = [&](std::int64_t x, std::int64_t row, bool first, const T* now, std::int64_t n)
                         ISOHALO_INLINED {
                           for (std::int64_t l = 0; l < n; ++l) {
                             const double change = detail::squared_change(now[l], before[row * rows.apart + x + l]);
                             how.sums[x + l] = first ? change : how.sums[x + l] + change;
                           }
                         };
    for (; rows.apart == apart_ && k + kRowsAtOnce <= rows.count; k += kRowsAtOnce) {
      const T* const from = in + k * apart_;
      const auto store = [&](std::int64_t x, int r, const V& v) ISOHALO_INLINED {
        const std::int64_t place = (k + r) * apart_ + x;
        detail::fetch_line(in + place + how.later + how.lead);
        alignas(64) std::array<T, kLanes> now;
        Vector::store(now.data(), v);
        if (how.sums) add(x, k + r, how.first && k + r == 0, now.data(), kLanes);
        how.past_caches ? detail::stream<Bytes>(out + place, now.data()) : Vector::store(out + place, v);
      };
      blocks_of_rows<64 / Bytes, kRowsAtOnce>(from, rows.cells, 0, false, store);
    }
    for (; k < rows.count; ++k) {
      T* const written = out + k * rows.apart;
      run_row(in + k * rows.apart, written, rows.cells);
      if (how.sums) add(0, k, how.first && k == 0, written, rows.cells);
    }
  }

  static constexpr std::size_t kGroup = 9;
  static constexpr std::int64_t kTried = 256;  ///< at most so many cells: as sweeps that fetch come to them
  std::vector<std::int64_t> at_;
  std::vector<Run> runs_;
  std::vector<Stack> stacks_;
  std::int64_t apart_ = 0, rows_read_ = 0;  ///< rows of theirs, by four
  std::vector<T> weight_;
  bool by_runs_ = false, wide_ = false;
  bool four_ = false, eight_ = false;  ///< rows at a time
};

// Outside the class, since sources would compile again what they could put in the place of a call.

template <class T, int Bytes>
void WeightedTerms<T, Bytes>::run(const T* in, T* out, const CellRows& rows) const {
  std::int64_t k = 0;
  // Not many rows that come from memory, unless they are so short that what begins them counts: the processor's
  // prefetcher does not follow them all. (27 points, 200^3, a Xeon: 0.85 of the speed, 4096 x 32 x 32 1.3 of it; 9
  // points, 4096^2: 1.06.)
  if (fits(rows)) {
    if (eight_ && near(rows)) k = rows_at_once<1, kMostAtOnce>(in, out, rows, k);
    if (four_ && (near(rows) || rows_read_ + kRowsAtOnce <= kFollowed))
      k = rows_at_once<2, kRowsAtOnce>(in, out, rows, k);
  }
  if (!by_runs_ && k == 0) return in_groups(in, out, rows);
  for (; k < rows.count; ++k) run_row(in + k * rows.apart, out + k * rows.apart, rows.cells);
}

template <class T, int Bytes>
void WeightedTerms<T, Bytes>::stream(const T* in, T* out, std::int64_t at, const CellRows& rows,
                                     const Streaming<T>& how) const {
  at_.size() <= kGroup ? stream_group(std::make_index_sequence<kGroup>{}, in, out, at, rows, how)
                       : stream_stacks(in + at, out + at, at, rows, how);
}

template <class T, int Bytes>
void WeightedTerms<T, Bytes>::run_row(const T* in, T* out, std::int64_t n) const {
  if (!by_runs_) return in_groups(in, out, {n});
  std::int64_t x = 0;
  if (wide_) x = blocks<8>(in, out, n, x);
  x = blocks<4>(in, out, n, x);
  x = blocks<2>(in, out, n, x);
  x = blocks<1>(in, out, n, x);
  if (x < n) in_groups(in + x, out + x, {n - x});
}

template <class T, int Bytes>
void WeightedTerms<T, Bytes>::try_out(std::int64_t cells) {
  constexpr std::int64_t kRows = 32;
  const std::int64_t n = std::clamp<std::int64_t>(cells, 1, kTried), count = four_ ? kMostAtOnce : 1,
                     row = (n + kLongest + 2 * kLine) / kLine * kLine;
  WeightedTerms tried = *this;
  tried.apart_ = row;
  std::int64_t first = 0;  // row of a stack
  std::size_t run = 0, term = 0;
  for (Stack& stack : tried.stacks_) {
    stack.at = first % kRows * row + (stack.at % kLine + kLine) % kLine;
    first += count + stack.height - 1;
    for (int h = 0; h < stack.height; ++h, ++run) {
      tried.runs_[run].at = stack.at + h * row;
      for (int t = 0; t < stack.terms; ++t) tried.at_[term++] = tried.runs_[run].at + t;
    }
  }
  const std::vector<T> read(static_cast<std::size_t>((kRows + kMostAtOnce + 3) * row + kLine), T(1));
  std::vector<T> written(static_cast<std::size_t>(count * row + kLine));
  const T* const in = read.data() + detail::to_next_line(read.data());
  T* const out = written.data() + detail::to_next_line(written.data());
  // For some time, since a processor may take a while until it has its widest vectors at full speed.
  const detail::Stopwatch all;
  constexpr int kGroups = 0, kRuns = 1, kFour = 2, kEight = 3;
  std::array<double, 4> least{1e300, 1e300, 1e300, 1e300};
  const int ways = four_ ? 4 : 2;
  for (int round = 0; round < 6 * ways || all.seconds() < ways * 100e-6; ++round) {
    const int way = round % ways;
    tried.by_runs_ = way == kRuns;
    tried.four_ = way == kFour;
    tried.eight_ = way == kEight;
    const detail::Stopwatch watch;
    for (std::int64_t done = 0; done < 4 * kTried; done += n * count) tried.run(in, out, {n, count, row, true});
    least[way] = std::min(least[way], watch.seconds());
  }
  by_runs_ = least[kRuns] < (at_.size() > kGroup ? 1.1 : 1) * least[kGroups];
  const double single = least[by_runs_ ? kRuns : kGroups];
  four_ = least[kFour] < single;
  eight_ = least[kEight] < (four_ ? least[kFour] : single);
}

// Compiled once (weighted_terms.cpp).
extern template class WeightedTerms<float>;
extern template class WeightedTerms<double>;

}  // namespace isohalo
