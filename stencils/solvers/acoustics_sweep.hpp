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
      : kernel(row), out(&writes.at(first)), i(behind<D>(first, 0)) {
    for (std::size_t f = 0; f < R; ++f) in[f] = &reads[f].at(first);
  }

  /// n cells from the x-th on, and their squared changes to `changes`, unless that is null.
  void run(std::int64_t x, std::int64_t n, double* changes) const {
    auto from = in;
    for (auto& p : from) p += x;
    kernel(from, out + x, n, behind<D>(i, x), changes);
  }
  /// The same in pieces, `fetches`: before each what comes kAhead cells later.
  void run(std::int64_t x, std::int64_t n, double* changes, bool fetches) const {
    if (!fetches) return run(x, n, changes);
    for (std::int64_t k = 0; k < n; k += kPiece) {
      const std::int64_t m = std::min(kPiece, n - k);
      fetch(x + k, m);
      run(x + k, m, changes ? changes + k : nullptr);
    }
  }

  const Row& kernel;
  std::array<const T*, R> in;
  T* out;
  Index<D> i;

 private:
  [[gnu::always_inline]] void fetch(std::int64_t x, std::int64_t n) const {
    for (std::int64_t k = x + kAhead; k < x + kAhead + n; k += kLine) {
      for (const T* p : in) fetch_to_read(p + k);
      fetch_to_write(out + k);
    }
  }
};

/// out = row(in, out) in the region. Fences. Local.
template <class T, int D, std::size_t R, class Row>
void sweep_in_place(const SweepRegion<D>& region, const std::array<ArrayRef<T, D>, R>& in,
                    const ArrayRef<T, D>& out, const Row& kernel, const Fetch& how = {}) {
  for_each_row_of("isohalo::sweep", region, [&kernel, in, out, how](const Index<D>& i, std::int64_t n) {
    RowInPlace<T, D, R, Row>(kernel, in, out, i).run(0, n, nullptr, how.ahead);
  });
}

/// A row that is updated in place, and gives its squared changes (see TreeReducer::run_band).
template <class T, int D, std::size_t R, class Row>
class UpdatedInPlace {
 public:
  using Cells = RowInPlace<T, D, R, Row>;
  UpdatedInPlace(const Cells& row, bool fetches) : row_(row), fetches_(fetches) {}
  static std::int64_t piece(std::int64_t) { return kPiece; }
  auto update(std::int64_t x, std::int64_t n) {
    row_.run(x, n, changes_.data(), fetches_);
    return [changes = changes_.data()](std::int64_t k) { return changes[k]; };
  }

 private:
  static constexpr std::int64_t kPiece = 256;

  Cells row_;
  bool fetches_;
  alignas(64) std::array<double, kPiece> changes_;
};

/// The same over the planes low .. high-1 of dimension 0 that this rank owns of `out`, and forms the tile values of
/// the squared changes on the way, in all calls of a step together (form_tile_values_of_planes; of one dimension
/// there is one call). Fences. Local.
template <class T, int D, std::size_t R, class Row>
void update_with_change(CellSum<D>& sum, std::vector<double>& lanes, std::int64_t low, std::int64_t high,
                        const std::array<ArrayRef<T, D>, R>& in, const ArrayRef<T, D>& out, const Row& kernel,
                        const Fetch& how) {
  const auto row = [&](const Index<D>& i, std::int64_t) {
    return UpdatedInPlace<T, D, R, Row>(RowInPlace<T, D, R, Row>(kernel, in, out, i), how.ahead);
  };
  constexpr const char* label = "isohalo::change";
  if constexpr (D == 1)
    form_tile_values(label, sum, lanes, row);
  else
    form_tile_values_of_planes(label, sum, lanes, low, high, row);
}

}  // namespace isohalo::detail
