#include "stencils/kernel_sweep.hpp"

#include <algorithm>
#include <array>

namespace isohalo {

namespace {

/// Elements from the first owned cell to cell i.
template <class T, int D>
std::int64_t place_of(const ArrayRef<T, D>& a, const Index<D>& i) {
  return offset_of<D>(i, a.owned.low, a.stride);
}

/// Rows of an update, in pieces between which memory is fetched.
template <class T, int D>
struct UpdatedRows {
  static constexpr std::int64_t kAhead = 32768 / static_cast<std::int64_t>(sizeof(T));  ///< cells; see Fetch
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kPiece = 8 * kLine;  ///< computed between two fetches

  /// n cells from the x-th of the row that begins at cell i, which lies at `at`.
  void run(Index<D> i, std::int64_t at, std::int64_t x, std::int64_t n) const {
    i[D - 1] += x;
    update.kernel.run(update.in.data(), update.out.data(), at + x, n, i);
  }
  /// Fetches n cells from `at` on, and for reading those `how.lead` behind; of the kernel's own array those at
  /// `source`, if there is one.
  [[gnu::always_inline]] void fetch(std::int64_t at, std::int64_t n, const T* source) const {
    for (const T* p : update.in)
      for (const T *k = p + at + how.lead, *const end = k + n; k < end; k += kLine) detail::fetch_to_read(k);
    for (const T* p : update.out)
      for (const T *k = p + at, *const end = k + n; k < end; k += kLine) detail::fetch_to_write(k);
    if (!source) return;
    for (const T *k = source, *const end = k + n; k < end; k += kLine) detail::fetch_to_read(k);
  }
  const T* source_at(const Index<D>& i) const { return how.ahead ? update.kernel.source_at(i) : nullptr; }

  /// Cells x to end-1 of the row that begins at cell i, fetching memory on the way if it is to be fetched.
  void run_fetching(const Index<D>& i, std::int64_t at, std::int64_t x, std::int64_t end) const {
    if (!how.ahead) return run(i, at, x, end - x);
    const T* const source = source_at(i);
    for (; x < end; x += kPiece) {
      const std::int64_t m = std::min(kPiece, end - x);
      fetch(at + x + kAhead, m, source ? source + x + kAhead : nullptr);
      run(i, at, x, m);
    }
  }

  RowUpdate<T, D> update;
  Fetch how;
};

/// The squared changes of a row that begins at `at`; of several arrays the sum in their order. N arrays, or with 0
/// as many as there are.
template <class T, std::size_t N>
class SquaredChanges {
 public:
  SquaredChanges(std::span<T* const> before, std::span<T* const> after, std::int64_t at)
      : before_(before), after_(after), at_(at) {
    for (std::size_t f = 0; f < N; ++f) old_[f] = before[f] + at, now_[f] = after[f] + at;
  }
  double operator()(std::int64_t x) const {
    if constexpr (N > 0) {
      double all = square(now_[0][x], old_[0][x]);
      for (std::size_t f = 1; f < N; ++f) all = all + square(now_[f][x], old_[f][x]);
      return all;
    } else {
      double all = square(after_[0][at_ + x], before_[0][at_ + x]);
      for (std::size_t f = 1; f < after_.size(); ++f) all = all + square(after_[f][at_ + x], before_[f][at_ + x]);
      return all;
    }
  }

 private:
  static double square(T now, T old) {
    const double change = static_cast<double>(now) - static_cast<double>(old);
    return change * change;
  }

  std::span<T*const> before_, after_;
  std::int64_t at_;
  std::array<const T*, N> old_, now_;
};

/// f with the number of arrays as a constant, for which loops over cells are vectorised; 0 for many.
template <class F>
void with_number(std::size_t arrays, const F& f) {
  switch (arrays) {
    case 1:
      return f(std::integral_constant<std::size_t, 1>());
    case 2:
      return f(std::integral_constant<std::size_t, 2>());
    case 3:
      return f(std::integral_constant<std::size_t, 3>());
    default:
      return f(std::integral_constant<std::size_t, 0>());
  }
}

/// Elements from `p` on to where a cache line begins.
template <class T>
std::int64_t to_next_line(const T* p) {
  constexpr std::uintptr_t line = 64;
  return static_cast<std::int64_t>((line - reinterpret_cast<std::uintptr_t>(p) % line) % line / sizeof(T));
}

}  // namespace

template <class T, int D>
void sweep(const SweepRegion<D>& region, const RowUpdate<T, D>& update, const Fetch& how, std::int64_t part,
           std::int64_t parts) {
  const UpdatedRows<T, D> rows{update, how};
  const auto row = [rows](const Index<D>& i, std::int64_t n) {
    rows.run_fetching(i, place_of(rows.update.like, i), 0, n);
  };
  for_each_row_of("isohalo::sweep", region, row, part, parts);
}

template <class T, int D>
void sweep_box(const Box<D>& box, const RowUpdate<T, D>& update) {
  const UpdatedRows<T, D> rows{update, {}};
  const auto row = [rows](const Index<D>& i, std::int64_t n) {
    const std::int64_t at = place_of(rows.update.like, i);
    const std::int64_t head = to_next_line(rows.update.out[0] + at);
    if (head == 0 || n < 4 * head) return rows.run(i, at, 0, n);
    rows.run(i, at, 0, head);
    rows.run(i, at, head, n - head);
  };
  for_each_row_of("isohalo::tile", box, row);
}

namespace {

/// Cells of whole numbers: those that change are counted while they are in cache.
template <class T, int D>
void count_with_change(ChangeCount<D>& sum, const UpdatedRows<T, D>& rows, const T* before) {
  constexpr std::int64_t counted = 4096;  // at one go
  for_each_row_of("isohalo::change", sum.owned(), [&](const Index<D>& i, std::int64_t n) {
    const std::int64_t at = place_of(rows.update.like, i);
    std::int64_t count = 0;
    for (std::int64_t first = 0; first < n; first += counted) {
      const std::int64_t end = std::min(first + counted, n);
      rows.run_fetching(i, at, first, end);
      count += count_changes(before + at + first, rows.update.out[0] + at + first, end - first);
    }
    sum.add(count);
  });
}

}  // namespace

template <class T, int D>
void sweep_with_change(ChangeSum<T, D>& sum, std::vector<double>& scratch, const RowUpdate<T, D>& update,
                       std::span<T* const> before, const Fetch& how) {
  const UpdatedRows<T, D> rows{update, how};
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    count_with_change(sum, rows, before[0]);
  } else {
    const auto form = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
      const auto row = [&](const Index<D>& i, std::int64_t, const Index<D>& later) {
        const std::int64_t at = place_of(rows.update.like, i), away = place_of(rows.update.like, later);
        return UpdatedRow(
            [&rows, i, at, away, source = rows.source_at(later)](std::int64_t x, std::int64_t n) {
              if (rows.how.ahead) rows.fetch(away + x, n, source ? source + x : nullptr);
              rows.run(i, at, x, n);
            },
            SquaredChanges<T, N>(before, rows.update.out, at));
      };
      form_tile_values("isohalo::change", sum, scratch, row);
    };
    with_number(update.out.size(), form);
  }
}

template <class T, int D>
void change_in_box(ChangeSum<T, D>& sum, std::vector<double>& scratch, const Box<D>& box,
                   const ArrayRef<T, D>& like, std::span<T* const> after, std::span<T* const> before) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    const auto row = [&](const Index<D>& i, std::int64_t n) {
      const std::int64_t at = place_of(like, i);
      sum.add(count_changes(before[0] + at, after[0] + at, n));
    };
    for_each_row_of("isohalo::change", box, row);
  } else {
    const auto form = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
      form_tile_values("isohalo::change", sum, scratch, box, [&](const Index<D>& i, std::int64_t) {
        return SquaredChanges<T, N>(before, after, place_of(like, i));
      });
    };
    with_number(after.size(), form);
  }
}

#define ISOHALO_INSTANTIATE_FOR(T, D)                                                                           \
  template void sweep(const SweepRegion<D>&, const RowUpdate<T, D>&, const Fetch&, std::int64_t, std::int64_t); \
  template void sweep_box(const Box<D>&, const RowUpdate<T, D>&);                                               \
  template void sweep_with_change(ChangeSum<T, D>&, std::vector<double>&, const RowUpdate<T, D>&,               \
                                  std::span<T* const>, const Fetch&);                                           \
  template void change_in_box(ChangeSum<T, D>&, std::vector<double>&, const Box<D>&, const ArrayRef<T, D>&,     \
                              std::span<T* const>, std::span<T* const>);
#define ISOHALO_INSTANTIATE(D)       \
  ISOHALO_INSTANTIATE_FOR(double, D) \
  ISOHALO_INSTANTIATE_FOR(float, D)
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
ISOHALO_INSTANTIATE_FOR(std::uint8_t, 2)
#undef ISOHALO_INSTANTIATE
#undef ISOHALO_INSTANTIATE_FOR

}  // namespace isohalo
