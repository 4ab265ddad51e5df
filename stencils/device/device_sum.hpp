#pragma once
/// Sums over all cells of fields in the memory of a Kokkos execution space: tile values by kernels, in the order of
/// the reduction tree (docs/reductions.md), so that their bits are those of the host.

#include <algorithm>
#include <string>
#include <vector>

#include "stencils/boxes.hpp"
#include "stencils/device/device_field.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

namespace detail {

/// Lane n of the lines of tiles of a box: the sum over the rows of a tile in index order. Lines are in index order,
/// each as long as the box's rows.
template <class Value, int D>
struct LaneKernel {
  Value value;
  double* lanes;
  std::int64_t first, length;                    ///< to the box's first cell; cells of a row
  std::int64_t extent[D], stride[D], height[D];  ///< of the box; of the arrays; of a tile

  KOKKOS_FUNCTION void operator()(const std::int64_t n) const {
    std::int64_t line = n / length, at = first + (n - line * length);
    std::int64_t rows[D] = {}, i[D] = {};
    for (int j = D - 2; j >= 0; --j) {
      const std::int64_t tiles = (extent[j] + height[j] - 1) / height[j], t = line % tiles;
      line /= tiles;
      at += t * height[j] * stride[j];
      rows[j] = extent[j] - t * height[j] < height[j] ? extent[j] - t * height[j] : height[j];
    }
    double sum = value(at);
    for (;;) {
      int j = D - 2;
      for (; j >= 0; --j) {
        at += stride[j];
        if (++i[j] < rows[j]) break;
        at -= rows[j] * stride[j];
        i[j] = 0;
      }
      if (j < 0) break;
      sum = sum + value(at);
    }
    lanes[n] = sum;
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
    for (std::int64_t h = width / 2; h >= 1; h /= 2)
      for (std::int64_t l = 0; l < h && l + h < there; ++l) lane[l] = lane[l] + lane[l + h];
    values[n] = lane[0];
  }
};

/// Values of the cells of a box, densely.
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
    bare[n] = value(at);
  }
};

}  // namespace detail

/// Of the cells of a block.
template <int D, class Space>
class DeviceSum {
 public:
  /// `sum` must live as long. Local.
  explicit DeviceSum(CellSum<D>& sum) : sum_(&sum) {
    const Box<D> owned = sum.domain().owned(), global = sum.domain().global();
    const Index<D>& tile = sum.tile();
    for (int j = 0; j < D; ++j) {
      const auto tiles = [&](std::int64_t cells) { return (cells + tile[j] - 1) / tile[j]; };
      tiles_.low[j] = tiles(owned.low[j]);
      tiles_.high[j] = owned.high[j] == global.high[j] ? tiles(owned.high[j]) : owned.high[j] / tile[j];
      cells_.low[j] = tiles_.low[j] * tile[j];
      cells_.high[j] = std::min(tiles_.high[j] * tile[j], global.high[j]);
    }
    lines_ = 1;
    for (int j = 0; j < D - 1; ++j) lines_ *= tiles_.extent(j);
    cut_ = detail::without({owned}, cells_);
    std::int64_t bare = 0, scratch = 0;
    for (const Box<D>& b : cut_) {
      bare += b.cells();
      scratch = std::max(scratch, sum.scratch_size(b));
    }
    scratch_.resize(static_cast<std::size_t>(scratch));
    values_ = Pair("isohalo::tile_values", tiles_.empty() ? 0 : tiles_.cells());
    bare_ = Pair("isohalo::bare_values", bare);
    lanes_ = Doubles("isohalo::lanes", static_cast<std::size_t>(tiles_.empty() ? 0 : lines_ * row()));
  }

  /// Forms the tile values of value(k) of the cells, k elements behind the first owned cell of arrays like `like`;
  /// it is copied to where Space computes. `sum.combine()` then gives the sum. Fences. Local.
  template <class Value, class T>
  void form(const Value& value, const ArrayRef<T, D>& like) {
    form_whole(value, like);
    form_cut(value, like);
  }

 private:
  using Doubles = Kokkos::View<double*, typename Space::memory_space>;
  /// Numbers that kernels write and the host reads.
  struct Pair {
    Pair() = default;
    Pair(const std::string& name, std::int64_t n)
        : there(name, static_cast<std::size_t>(n)), here(name + " (host)", static_cast<std::size_t>(n)) {}
    void bring() const { Kokkos::deep_copy(here, there); }
    Doubles there;
    Kokkos::View<double*, detail::HostMemory> here;
  };

  std::int64_t row() const { return cells_.extent(D - 1); }

  template <class Kernel>
  static void launch(const char* label, std::int64_t n, const Kernel& kernel) {
    if (n > 0)
      Kokkos::parallel_for(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, n), kernel);
  }

  /// Tiles that lie in this block.
  template <class Value, class T>
  void form_whole(const Value& value, const ArrayRef<T, D>& like) {
    if (tiles_.empty()) return;
    detail::LaneKernel<Value, D> lanes{
        value, lanes_.data(), offset_of<D>(cells_.low, like.owned.low, like.stride), row(), {}, {}, {}};
    for (int j = 0; j < D; ++j) {
      lanes.extent[j] = cells_.extent(j);
      lanes.stride[j] = like.stride[j];
      lanes.height[j] = sum_->tile()[j];
    }
    launch("isohalo::lanes", lines_ * row(), lanes);
    launch(
        "isohalo::tiles", tiles_.cells(),
        detail::FoldKernel{lanes_.data(), values_.there.data(), row(), sum_->tile()[D - 1], tiles_.extent(D - 1)});
    take_whole();
  }
  void take_whole() {
    values_.bring();
    const double* of_tile = values_.here.data();
    for_each_row(tiles_, [&](const Index<D>& t) {
      const auto to = static_cast<std::size_t>(linear_index(sum_->tiles(), t));
      std::copy_n(of_tile, tiles_.extent(D - 1), &sum_->tile_values()[to]);
      of_tile += tiles_.extent(D - 1);
    });
  }

  /// Cells of tiles that a rank border cuts: their owners form the values.
  template <class Value, class T>
  void form_cut(const Value& value, const ArrayRef<T, D>& like) {
    std::int64_t at = 0;
    for (const Box<D>& b : cut_) {
      detail::BareKernel<Value, D> bare{
          value, bare_.there.data() + at, offset_of<D>(b.low, like.owned.low, like.stride), {}, {}};
      for (int j = 0; j < D; ++j) bare.extent[j] = b.extent(j), bare.stride[j] = like.stride[j];
      launch("isohalo::bare", b.cells(), bare);
      at += b.cells();
    }
    if (at > 0) form_bare();
  }
  /// Once the bare values are there.
  void form_bare() {
    bare_.bring();
    const double* of_box = bare_.here.data();
    for (const Box<D>& b : cut_) {
      sum_->run_box(b, scratch_.data(), [&](const Index<D>& i, std::int64_t) {
        return [cells = of_box + linear_index(b, i)](std::int64_t x) { return cells[x]; };
      });
      of_box += b.cells();
    }
  }

  CellSum<D>* sum_;
  Box<D> tiles_, cells_;  ///< whole tiles of this block; their cells
  std::int64_t lines_;    ///< of these tiles
  std::vector<Box<D>> cut_;
  std::vector<double> scratch_;
  Pair values_, bare_;
  Doubles lanes_;
};

}  // namespace isohalo
