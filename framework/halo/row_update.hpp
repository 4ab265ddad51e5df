#pragma once
/// Rows of cells that a kernel updates, in pieces between which memory is fetched, and, where it may, past the
/// caches.

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "datatypes/fetch.hpp"
#include "datatypes/streaming_copy.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/row_blocks.hpp"
#include "framework/halo/row_kernel.hpp"
#include "framework/schedule/fastest_way.hpp"

namespace isohalo {

/// What a sweep does about memory.
struct Fetch {
  /// Does it fetch memory before it comes there? The processor's own prefetcher keeps too little on its way.
  bool ahead = false;
  /// Does what it writes go past the caches, where the kernel allows it? A line is not read then before it is
  /// overwritten, a third of the traffic. Of use for arrays that no cache holds until the next sweep, and only with
  /// `ahead` (docs/performance.md).
  bool past_caches = false;
  /// How far behind a cell, in elements of the arrays, the last one lies that its update reads, where it reads
  /// neighbors.
  std::int64_t lead = 0;
  /// Cache lines of each array that are fetched at a time, before as many are computed; of bytes twice as many. Of
  /// kernels that go line by line it says how many rows they take together, and lines of these: `rows`,
  /// `lines_of_row`.
  std::int64_t lines = 8;
  /// Do the arrays stay in a cache near by from one sweep to the next? Then several rows at a time are faster.
  bool in_cache = false;
  /// Where nothing else is fetched, if it is not 0: elements from a cell to what is fetched while it is updated.
  std::int64_t next = 0;
  /// Where nothing is fetched: are rows whose values are summed up taken one by one? By four the sums are faster,
  /// but the processor's prefetcher has more rows to follow.
  bool one_by_one = false;

  /// What is worth a trial: nothing; fetching; past the caches; and that with more at a time, which on some
  /// processors is a gain and on others too much. Of sums also nothing, with rows one by one.
  static constexpr std::size_t kWays = 4, kWaysOfSums = 5;
  static constexpr std::int64_t kMostLines = 32;
  /// Does a kernel that can go line by line do so? Of two dimensions, whose rows are long, always; of more only
  /// in the ways past the caches, since pieces may be faster else (docs/performance.md).
  template <int D>
  bool by_line() const {
    return ahead && (D == 2 || (D > 2 && past_caches));
  }
  /// How many rows it takes together then, and lines of each: which is fastest depends on the processor and the
  /// number of arrays. `streamed`, where less is on its way at a time, two rows; else four, and of more dimensions,
  /// whose rows are shorter, one.
  bool by_two() const { return past_caches && lines < kMostLines; }
  template <int D>
  std::int64_t rows() const {
    return by_two() ? 2 : D == 2 ? 4 : 1;
  }
  template <int D>
  std::int64_t lines_of_row() const {
    return by_two() || D == 2 ? 4 : 16;
  }
  static Fetch by_way(std::size_t way, std::int64_t lead) {
    if (way == kWays) return {.lead = lead, .one_by_one = true};
    return {.ahead = way > 0, .past_caches = way > 1, .lead = lead, .lines = way > 2 ? kMostLines : 8};
  }
  /// Of these ways: input files name them, and runs say which one they took.
  static constexpr const char* kWayNames[kWaysOfSums] = {"plain", "fetched", "streamed", "streamed_far",
                                                         "plain_rows"};
  static std::string text(const FastestWay& ways) {
    return ways.decided() ? kWayNames[ways.way()] : "still tried out";
  }
  /// Of two choices, until the first is made that of sums: where every step has one, it never is.
  static std::string text(const FastestWay& ways, const FastestWay& with_sums) {
    return text(ways.decided() ? ways : with_sums);
  }
};

/// A kernel and the arrays that it reads and writes, by the addresses of their first owned cells.
template <class T, int D>
struct RowUpdate {
  const RowKernel<T, D>& kernel;
  const ArrayRef<T, D>& like;  ///< any of the arrays
  std::span<T*const> in, out;
};

namespace detail {

/// Elements from the first owned cell to cell i.
template <class T, int D>
std::int64_t place_of(const ArrayRef<T, D>& a, const Index<D>& i) {
  return offset_of<D>(i, a.owned.low, a.stride);
}

/// Rows of an update, in pieces between which memory is fetched.
template <class T, int D>
class UpdatedRows {
 public:
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kUnit =
      (sizeof(T) == 1 ? 2 : 1) * kLine;                             ///< cells of a piece for each of Fetch::lines
  static constexpr std::int64_t kMost = Fetch::kMostLines * kUnit;  ///< cells of the largest piece
  static constexpr std::size_t kArrays = 4;                         ///< at most so many are written past the caches
  static constexpr std::int64_t kAhead = 32768 / static_cast<std::int64_t>(sizeof(T));  ///< cells; see Fetch

  /// The new values of as many cells, that go past the caches.
  class Piece {
   public:
    Piece() {
      for (std::size_t f = 0; f < kArrays; ++f) addresses_[f] = cells_[f].data();
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    std::span<T* const> addresses() const { return addresses_; }

   private:
    alignas(64) std::array<std::array<T, kMost>, kArrays> cells_;
    std::array<T*, kArrays> addresses_;
  };

  UpdatedRows(const RowUpdate<T, D>& update, const Fetch& how)
      : update_(update), how_(how), piece_(how.lines * kUnit) {
    past_ = how.ahead && how.past_caches && update.out.size() <= kArrays && !update.kernel.reads_what_it_writes();
    for (const T* p : update.out)
      past_ = past_ && std::find(update.in.begin(), update.in.end(), p) == update.in.end();
    for (std::size_t k = 0; k < update.in.size() && k < kLeads; ++k)
      if (update.kernel.reads_beside(k)) leads_ |= std::uint64_t{1} << k;
    streams_ = how.by_line<D>() && update.kernel.streams();
    if (past_)
      for (const T* p : update.out)
        streams_ = streams_ && update.like.stride[D > 1 ? D - 2 : 0] % kLine == 0 &&
                   to_next_line(p) == to_next_line(update.out[0]);
  }

  const RowUpdate<T, D>& update() const { return update_; }
  bool fetches() const { return how_.ahead; }
  /// Are rows that are summed up to be updated four at a time? Not where each fetches for its own later ones.
  bool by_four() const { return !how_.ahead && !how_.one_by_one; }
  bool in_cache() const { return how_.in_cache; }
  bool past_caches() const { return past_; }
  /// Does it all line by line?
  bool streams() const { return streams_; }
  const T* source_at(const Index<D>& i) const { return how_.ahead ? update_.kernel.source_at(i) : nullptr; }
  /// So many cells from `at` on are a piece: past the caches, one that begins where a line does.
  std::int64_t piece(std::int64_t at) const {
    const std::int64_t head = past_ ? to_next_line(update_.out[0] + at) : 0;
    return head > 0 ? head : piece_;
  }

  /// Cells from the x-th of the row that begins at cell i, which lies at `at`, and of as many rows from it on.
  void run(const Index<D>& i, std::int64_t at, std::int64_t x, const CellRows& rows) const {
    update_.kernel.run(update_.in.data(), at + x, update_.out.data(), at + x, rows, behind<D>(i, x));
  }
  /// The same for a piece that goes past the caches; its values stay behind `values`, from `to` on.
  void run(const Index<D>& i, std::int64_t at, std::int64_t x, std::int64_t n, std::span<T* const> values,
           std::int64_t to = 0) const {
    update_.kernel.run(update_.in.data(), at + x, values.data(), to, {n}, behind<D>(i, x));
    for (std::size_t f = 0; f < update_.out.size(); ++f)
      streaming_copy<0>(update_.out[f] + at + x, values[f] + to, static_cast<std::size_t>(n) * sizeof(T));
  }
  /// Fetches n cells from `at` on, of arrays whose neighbors are read those `lead` behind; of the kernel's own
  /// array those at `source`, if there is one.
  [[gnu::always_inline]] void fetch(std::int64_t at, std::int64_t n, const T* source) const {
    for (std::size_t f = 0; f < update_.in.size(); ++f) {
      const T* const from = update_.in[f] + at + (f >= kLeads || leads_ >> f & 1 ? how_.lead : 0);
      for (const T *k = from, *const end = k + n; k < end; k += kLine) fetch_line(k);
    }
    if (!past_)
      for (const T* p : update_.out)
        for (const T *k = p + at, *const end = k + n; k < end; k += kLine) fetch_line(k);
    if (!source) return;
    for (const T *k = source, *const end = k + n; k < end; k += kLine) fetch_line(k);
  }

  /// A piece of a block of rows, fetching memory on the way if it is to be fetched.
  void run(const Box<D>& piece, const Box<D>& block) const {
    if (!how_.ahead) return run_box(piece);
    if (streams_) return stream_box(piece, block);
    for_each_row(piece, [&](const Index<D>& i) {
      run_row(i, piece.extent(D - 1), block, [](std::int64_t, std::int64_t, const T*) {});
    });
  }

  /// Some rows from cell i on, that lie at `at`, line by line, while what lies how.later elements behind is
  /// fetched. edge(x, m) for the m cells from the x-th on that are part of a line alone.
  template <class Edge>
  void stream(const Index<D>& i, std::int64_t at, const CellRows& rows, Streaming<T> how, const Edge& edge) const {
    how.lead = how_.lead, how.past_caches = past_;
    how.rows = how_.template rows<D>(), how.lines = how_.template lines_of_row<D>();
    const std::int64_t n = rows.cells, head = std::min(n, to_next_line(update_.out[0] + at)),
                       lines = (n - head) / kLine * kLine;
    if (head > 0) edge(0, head);
    if (how.sums) how.sums += head;
    update_.kernel.stream(update_.in, update_.out, at + head, {lines, rows.count, rows.apart}, behind<D>(i, head),
                          how);
    if (head + lines < n) edge(head + lines, n - head - lines);
  }

  /// A box, nothing fetched but Fetch::next. Where its rows begin alike and are not short, their first cells, up to
  /// where a cache line begins in the first array that is written, are rows of their own, so that vectors of the
  /// others do not straddle lines. (7 points in the first-level cache of an EPYC: 5.2 against 3.5 G updates/s.)
  void run_box(const Box<D>& box) const {
    constexpr int along = D == 1 ? 0 : D - 2;
    const std::int64_t n = box.extent(D - 1), apart = D == 1 ? 0 : update_.like.stride[along];
    const std::int64_t rows = D > 1 ? box.extent(along) : 1;
    const std::int64_t most =
        how_.next == 0 ? kUnfetched : std::max<std::int64_t>(1, kFetchedAtOnce / rows) * kLine;
    Box<D> first = box;
    if (D > 1) first.high[along] = std::min(first.high[along], first.low[along] + 1);
    for_each_row(first, [&](const Index<D>& i) {
      const std::int64_t at = place_of(update_.like, i);
      const std::int64_t head = apart % kLine ? 0 : to_next_line(update_.out[0] + at);
      for (std::int64_t x = 0, m = n < 4 * head ? 0 : head; x < n; x += m) {
        if (x > 0 || m == 0) m = std::min(most, n - x);
        for (std::int64_t row = 0; how_.next != 0 && row < rows; ++row)
          fetch(at + x + row * apart + how_.next, m, nullptr);
        run(i, at, x, {m, rows, apart, how_.in_cache});
      }
    });
  }

  /// The n cells of the row that begins at cell i, fetching memory on the way for what comes later in index order
  /// of the block of rows, and then(x, m, v) for each piece: m cells from the x-th on, whose new values, of the
  /// first array, begin at v.
  template <class Then>
  void run_row(const Index<D>& i, std::int64_t n, const Box<D>& block, const Then& then) const {
    const std::int64_t at = place_of(update_.like, i);
    T* const out = update_.out[0] + at;
    // Within the row, if that is long enough.
    const std::int64_t row = block.extent(D - 1), in_row = row >= 2 * kAhead ? kAhead : 0;
    const std::int64_t rows = std::max<std::int64_t>(1, kAhead / row);
    const Index<D> later = in_row > 0 ? behind<D>(i, 0) : row_later(block, i, rows);
    const std::int64_t later_at = place_of(update_.like, later) + in_row;
    const T *const source_later = source_at(later), *const source = source_later ? source_later + in_row : nullptr;
    const Piece piece;
    for (std::int64_t x = 0, m = 0; x < n; x += m) {
      m = std::min(this->piece(at + x), n - x);
      fetch(later_at + x, m, source ? source + x : nullptr);
      past_ ? run(i, at, x, m, piece.addresses()) : run(i, at, x, {m});
      then(x, m, past_ ? piece.addresses()[0] : out + x);
    }
  }

 private:
  static constexpr std::int64_t kUnfetched = 1 << 12;  ///< pieces of their own
  static constexpr std::int64_t kFetchedAtOnce = 16;   ///< lines of an array, of Fetch::next
  static constexpr std::size_t kLeads = 64;

  /// A piece of a block line by line, all rows of a plane in one call, of long ones four. What is fetched is of
  /// rows that come later, or of these themselves if they are long.
  void stream_box(const Box<D>& piece, const Box<D>& block) const {
    if constexpr (D > 1) {
      constexpr std::int64_t four = 4;
      const std::int64_t n = piece.extent(D - 1), count = piece.extent(D - 2), ahead = std::max(four, kAhead / n);
      const bool in_rows = n > 2 * kAhead;
      const std::int64_t last = in_rows ? kAhead / how_.template rows<D>() : n, far = n - last,
                         at_once = in_rows ? four : count;
      Box<D> starts = piece;  // one cell for each plane
      starts.high[D - 2] = starts.low[D - 2] + 1;
      for_each_row(starts, [&](Index<D> i) {
        for (std::int64_t row = 0; row < count; row += at_once, i[D - 2] += at_once) {
          const CellRows rows{n, std::min(at_once, count - row), update_.like.stride[D - 2]};
          const std::int64_t at = place_of(update_.like, i);
          const auto part = [&](std::int64_t x, std::int64_t m, std::int64_t later) {
            stream(behind<D>(i, x), at + x, {m, rows.count, rows.apart}, {.later = later},
                   [&](std::int64_t k, std::int64_t some) {
                     run(i, at, x + k, {some, rows.count, rows.apart});
                   });
          };
          if (far > 0) part(0, far, last);
          part(far, last, place_of(update_.like, row_later(block, i, ahead)) - at - far);
        }
      });
    }
  }

  RowUpdate<T, D> update_;
  Fetch how_;
  std::int64_t piece_;
  std::uint64_t leads_ = 0;  ///< a bit for each of the first arrays in `in`: does the kernel read neighbors there?
  bool past_, streams_;
};

}  // namespace detail

}  // namespace isohalo
