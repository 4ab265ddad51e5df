#pragma once
/// Sweeps of rows whose arrays have strides of their own, as fields on faces and in cells have (kernel_sweep.hpp
/// has them for fields of one shape).

#include <algorithm>
#include <array>
#include <vector>

#include "framework/halo/array_ref.hpp"
#include "stencils/sweep.hpp"

namespace isohalo::detail {

/// A row that is updated in place, from cell i on, and the R arrays that it reads.
template <class T, int D, std::size_t R, class Row>
struct RowInPlace {
  static constexpr std::int64_t kAhead = 32768 / static_cast<std::int64_t>(sizeof(T));  ///< cells; see Fetch
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kPiece = 8 * kLine;  ///< computed between two fetches

  RowInPlace(const Row& row, const std::array<ArrayRef<T, D>, R>& reads, const ArrayRef<T, D>& writes,
             const Index<D>& first)
      : kernel(row), out(&writes.at(first)), i(first) {
    for (std::size_t f = 0; f < R; ++f) in[f] = &reads[f].at(first);
  }

  /// n cells from the x-th on.
  void run(std::int64_t x, std::int64_t n) const {
    auto from = in;
    for (auto& p : from) p += x;
    Index<D> at = i;
    at[D - 1] += x;
    kernel(from, out + x, n, at);
  }
  /// Fetches what lies `away` cells behind n cells from the x-th on.
  [[gnu::always_inline]] void fetch(std::int64_t x, std::int64_t n, std::int64_t away) const {
    for (std::int64_t k = x + away; k < x + away + n; k += kLine) {
      for (const T* p : in) fetch_to_read(p + k);
      fetch_to_write(out + k);
    }
  }

  const Row& kernel;
  std::array<const T*, R> in;
  T* out;
  Index<D> i;
};

/// out = row(in, out) in the region. Fences. Local.
template <class T, int D, std::size_t R, class Row>
void sweep_in_place(const SweepRegion<D>& region, const std::array<ArrayRef<T, D>, R>& in,
                    const ArrayRef<T, D>& out, const Row& kernel, const Fetch& how = {}) {
  for_each_row_of("isohalo::sweep", region, [&kernel, in, out, how](const Index<D>& i, std::int64_t n) {
    const RowInPlace<T, D, R, Row> row(kernel, in, out, i);
    if (!how.ahead) return row.run(0, n);
    for (std::int64_t x = 0; x < n; x += row.kPiece) {
      const std::int64_t m = std::min(row.kPiece, n - x);
      row.fetch(x, m, row.kAhead);
      row.run(x, m);
    }
  });
}

/// A row that is updated in place, and gives its squared changes: as an UpdatedRow.
template <class T, int D, class Update>
class UpdatedInPlace {
 public:
  UpdatedInPlace(const Update& update, const T* cells) : update_(update), now_(cells) {}
  static std::int64_t piece(std::int64_t) { return kPiece; }
  auto update(std::int64_t x, std::int64_t n) {
    std::copy_n(now_ + x, n, old_.data());
    update_(x, n);
    return [now = now_ + x, old = old_.data()](std::int64_t k) {
      const double change = static_cast<double>(now[k]) - static_cast<double>(old[k]);
      return change * change;
    };
  }

 private:
  static constexpr std::int64_t kPiece = piece_of_row(true);

  Update update_;
  const T* now_;
  std::array<T, kPiece> old_;
};

/// The same over the owned cells of `out`, and forms the tile values of the squared changes on the way. Fences.
/// Local.
template <class T, int D, std::size_t R, class Row>
void update_with_change(CellSum<D>& sum, std::vector<double>& scratch, const std::array<ArrayRef<T, D>, R>& in,
                        const ArrayRef<T, D>& out, const Row& kernel, const Fetch& how) {
  form_tile_values("isohalo::change", sum, scratch, [&](const Index<D>& i, std::int64_t, const Index<D>& later) {
    const RowInPlace<T, D, R, Row> row(kernel, in, out, i);
    const std::int64_t away = offset_of<D>(later, i, out.stride);
    const auto update = [row, how, away](std::int64_t x, std::int64_t n) {
      if (how.ahead) row.fetch(x, n, away);
      row.run(x, n);
    };
    return UpdatedInPlace<T, D, std::remove_const_t<decltype(update)>>(update, row.out);
  });
}

}  // namespace isohalo::detail
