#pragma once
/// Sums over all cells of fields in the memory of a Kokkos execution space: tile values by kernels, in the order of
/// the reduction tree (docs/reductions.md), so that their bits are those of the host.

#include <algorithm>
#include <string>
#include <vector>

#include "stencils/boxes.hpp"
#include "stencils/device/device_tree.hpp"

namespace isohalo {

namespace detail {

/// Is there a term to be had of what is stored?
template <class Value>
concept StoresValues = requires(const Value& v) {
  v.term(std::int64_t{}, v.values(std::int64_t{}));
};

/// terms[e] = value(k + e * step), or value.term of what is stored there on the way; cells and images as in
/// Images::store.
template <int along, int N, class Value, int D>
KOKKOS_FUNCTION void form_terms(const Value& value, std::int64_t k, std::int64_t step, double (&terms)[N],
                                const Images<D>& images, const std::uint32_t (&place)[D]) {
  if constexpr (StoresValues<Value>) {
    const std::uint32_t marks = images.template marks<along, N>(place);
    typename Value::Values values[N];
    form_values<along>(value, k, step, values);
    for (int e = 0; e < N; ++e) terms[e] = value.term(k + e * step, values[e]);
    for (int e = 0; e < N; ++e) value.store(k + e * step, values[e]);
    images.template store<along>(value, k, step, marks, values);
  } else {
    for (int e = 0; e < N; ++e) terms[e] = value(k + e * step);
  }
}

/// Lane n of the lines of tiles of a box: the sum over the rows of a tile in index order of value(k), k elements
/// behind the first owned cell; or of value.term(k, values), after which value.store(k, values) stores what
/// value.values(k) has given. Lines are in index order, each as long as the box's rows.
template <class Value, int D>
struct LaneKernel {
  Value value;
  double* lanes;  ///< of the line `line` and those behind it
  std::uint32_t line;
  std::int64_t first;                  ///< to the box's first cell
  Divisor length;                      ///< cells of a row
  std::uint32_t extent[D], height[D];  ///< of the box; of a tile
  Divisor tiles[D];                    ///< in the box
  std::int64_t stride[D];              ///< of the arrays
  Images<D> images;                    ///< where the box is that of all owned cells

  static constexpr int inner = D > 1 ? D - 2 : 0;

  KOKKOS_FUNCTION void operator()(const std::int64_t n) const {
    std::uint32_t i[D];  // in the box
    if constexpr (D == 1) {
      i[0] = static_cast<std::uint32_t>(n);
      lanes[n] = add<1>(-0.0, first + n, 0, i);
      return;
    }
    auto x = static_cast<std::uint32_t>(n);
    std::uint32_t left = line + length.take_from(x);
    std::int64_t at = first + x;
    std::uint32_t begin[D] = {}, end[D] = {};
    i[D - 1] = x;
    for (int j = D - 2; j >= 0; --j) {
      std::uint32_t t = left;
      left = tiles[j].take_from(t);
      i[j] = begin[j] = t * height[j];
      at += begin[j] * stride[j];
      end[j] = extent[j] - begin[j] < height[j] ? extent[j] : begin[j] + height[j];
    }
    const std::int64_t row = step_of(value, inner, stride[inner]);
    double sum = -0.0;  // -0 + a is a, whatever a is
    for (;;) {
      std::int64_t k = at;
      for (i[inner] = begin[inner]; i[inner] + kTogether <= end[inner]; i[inner] += kTogether, k += kTogether * row)
        sum = add<kTogether>(sum, k, row, i);
      for (; i[inner] < end[inner]; ++i[inner], k += row) sum = add<1>(sum, k, 0, i);
      int j = inner - 1;
      for (; j >= 0; --j) {
        at += stride[j];
        if (++i[j] < end[j]) break;
        at -= (end[j] - begin[j]) * stride[j];
        i[j] = begin[j];
      }
      if (j < 0) break;
    }
    lanes[n] = sum;
  }

 private:
  /// The sum and the terms of N cells.
  template <int N>
  KOKKOS_FUNCTION double add(double sum, std::int64_t k, std::int64_t step, const std::uint32_t (&place)[D]) const {
    double terms[N];
    form_terms<inner>(value, k, step, terms, images, place);
    for (int e = 0; e < N; ++e) sum = sum + terms[e];
    return sum;
  }
};

/// The value of tile n of such lines: its lanes folded by halving strides (fold_lanes).
struct FoldKernel {
  double *lanes, *values;
  std::int64_t length, width, in_line;  ///< of a line; of a tile; tiles of a line

  KOKKOS_FUNCTION void operator()(const std::int64_t n) const {
    const std::int64_t line = n / in_line, begin = (n - line * in_line) * width;
    const std::int64_t there = length - begin < width ? length - begin : width;
    double* const lane = lanes + line * length + begin;
    if (width == 16 && there == width) {  // in registers
      double l[8];
      for (int e = 0; e < 8; ++e) l[e] = lane[e] + lane[e + 8];
      for (int h = 4; h >= 1; h /= 2)
        for (int e = 0; e < h; ++e) l[e] = l[e] + l[e + h];
      values[n] = l[0];
      return;
    }
    for (std::int64_t h = width / 2; h >= 1; h /= 2)
      for (std::int64_t l = 0; l < h && l + h < there; ++l) lane[l] = lane[l] + lane[l + h];
    values[n] = lane[0];
  }
};

/// Values of the cells of a box, densely; as in LaneKernel.
template <class Value, int D>
struct BareKernel {
  Value value;
  double* bare;
  std::int64_t first, extent[D], stride[D];

  KOKKOS_FUNCTION void operator()(const std::int64_t n) const {
    std::int64_t left = n, at = first;
    for (int j = D - 1; j >= 0; --j) {
      at += left % extent[j] * stride[j];
      left /= extent[j];
    }
    double term[1];
    const std::uint32_t place[D] = {};
    form_terms<0>(value, at, 0, term, Images<D>(), place);
    bare[n] = term[0];
  }
};

// What takes a mean away.
template <class T>
struct ValueAt {
  const T* u;
  KOKKOS_FUNCTION double operator()(std::int64_t k) const { return static_cast<double>(u[k]); }
};
template <class T>
struct ShiftAt {
  T by;
  T* u;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { u[k] = u[k] - by; }
};

}  // namespace detail

/// Of the cells of a block.
template <int D, class Space>
class DeviceSum {
 public:
  /// `sum` must live as long, and is used with `form` alone from now on: see DeviceTree. Local.
  explicit DeviceSum(CellSum<D>& sum)
      : sum_(&sum), tiles_(tiles_in_block(sum)), cells_(cells_of(sum, tiles_)), tree_(sum, tiles_) {
    lines_ = 1;
    for (int j = 0; j < D - 1; ++j) lines_ *= tiles_.extent(j);
    cut_ = detail::without({sum.domain().owned()}, cells_);
    std::int64_t bare = 0, scratch = 0;
    for (const Box<D>& b : cut_) {
      bare += b.cells();
      scratch = std::max(scratch, sum.scratch_size(b));
    }
    scratch_.resize(static_cast<std::size_t>(scratch));
    bare_ = NumbersForHost<Space>("isohalo::bare_values", bare);
    lanes_ = Doubles("isohalo::lanes", static_cast<std::size_t>(tiles_.empty() ? 0 : lines_ * row()));
  }

  /// Forms the tile values of value(k) of the owned cells, k elements behind the first one of arrays like `like`,
  /// or of value.term(k, values), storing value.store(k, values), values being value.values(k); `value` is copied
  /// to where Space computes. `sum.combine()` then gives the sum. Fences. Local.
  template <class Value, class T>
  void form(const Value& value, const ArrayRef<T, D>& like) {
    form_whole(value, like);
    form_cut(value, like);
    take();
  }

  const CellSum<D>& sum() const { return *sum_; }

  /// The same in parts. Only `take` fences.
  /// The cells of tiles that lie in this block, and their values; images only where those are all owned cells.
  const Box<D>& cells() const { return cells_; }
  template <class Value, class T>
  void form_whole(const Value& value, const ArrayRef<T, D>& like, const detail::Images<D>& images = {}) const {
    if (tiles_.empty()) return;
    detail::LaneKernel<Value, D> lanes{
        value, lanes_.data(), 0, offset_of<D>(cells_.low, like.owned.low, like.stride), {}, {}, {}, {}, {}, images};
    for (int j = 0; j < D; ++j) {
      lanes.extent[j] = static_cast<std::uint32_t>(cells_.extent(j));
      lanes.height[j] = static_cast<std::uint32_t>(sum_->tile()[j]);
      lanes.stride[j] = like.stride[j];
      if (j + 1 < D) lanes.tiles[j] = detail::Divisor(tiles_.extent(j));
    }
    if constexpr (D == 1) {
      detail::for_each_number_in<Space>("isohalo::lanes", row(), lanes);
    } else {
      lanes.length = detail::Divisor(row());
      const std::int64_t at_once = std::max<std::int64_t>(1, (std::int64_t{1} << 31) / row() - 1);  // see Divisor
      for (std::int64_t line = 0; line < lines_; line += at_once) {
        lanes.line = static_cast<std::uint32_t>(line), lanes.lanes = lanes_.data() + line * row();
        detail::for_each_number_in<Space, std::uint32_t>("isohalo::lanes", std::min(at_once, lines_ - line) * row(),
                                                         lanes);
      }
    }
    detail::for_each_number_in<Space>(
        "isohalo::tiles", tiles_.cells(),
        detail::FoldKernel{lanes_.data(), tree_.values(), row(), sum_->tile()[D - 1], tiles_.extent(D - 1)});
  }
  /// The other owned cells, of tiles that a rank border cuts: their owners form the values.
  template <class Value, class T>
  void form_cut(const Value& value, const ArrayRef<T, D>& like) const {
    std::int64_t at = 0;
    for (const Box<D>& b : cut_) {
      detail::BareKernel<Value, D> bare{
          value, bare_.there.data() + at, offset_of<D>(b.low, like.owned.low, like.stride), {}, {}};
      for (int j = 0; j < D; ++j) bare.extent[j] = b.extent(j), bare.stride[j] = like.stride[j];
      detail::for_each_number_in<Space>("isohalo::bare", b.cells(), bare);
      at += b.cells();
    }
  }
  void take() {
    tree_.combine();
    if (cut_.empty()) return;
    bare_.bring();
    const double* of_box = bare_.here.data();
    for (const Box<D>& b : cut_) {
      sum_->run_box(b, scratch_.data(), [&](const Index<D>& i, std::int64_t) {
        return [cells = of_box + linear_index(b, i)](std::int64_t x) { return cells[x]; };
      });
      of_box += b.cells();
    }
  }

 private:
  using Doubles = Kokkos::View<double*, typename Space::memory_space>;

  static Box<D> tiles_in_block(const CellSum<D>& sum) {
    const Box<D> owned = sum.domain().owned(), global = sum.domain().global();
    Box<D> tiles;
    for (int j = 0; j < D; ++j) {
      const std::int64_t t = sum.tile()[j];
      tiles.low[j] = (owned.low[j] + t - 1) / t;
      tiles.high[j] = owned.high[j] == global.high[j] ? (owned.high[j] + t - 1) / t : owned.high[j] / t;
    }
    return tiles;
  }
  static Box<D> cells_of(const CellSum<D>& sum, const Box<D>& tiles) {
    Box<D> cells;
    for (int j = 0; j < D; ++j) {
      cells.low[j] = tiles.low[j] * sum.tile()[j];
      cells.high[j] = std::min(tiles.high[j] * sum.tile()[j], sum.domain().global().high[j]);
    }
    return cells;
  }
  std::int64_t row() const { return cells_.extent(D - 1); }

  CellSum<D>* sum_;
  Box<D> tiles_, cells_;  ///< whole tiles of this block; their cells
  DeviceTree<D, Space> tree_;
  std::int64_t lines_;  ///< of these tiles
  std::vector<Box<D>> cut_;
  std::vector<double> scratch_;
  NumbersForHost<Space> bare_;
  Doubles lanes_;
};

}  // namespace isohalo
