#pragma once
/// A set of cells, a byte each, for stencils without a name. Small: large blocks are shrunk before.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "datatypes/box.hpp"
#include "framework/halo/stencil_shape.hpp"

namespace isohalo {

template <int D>
class CellSet {
 public:
  /// An empty set that can hold cells of `frame`.
  explicit CellSet(const Box<D>& frame) : frame_(frame), bits_(static_cast<std::size_t>(frame.cells())) {}

  void insert(const Box<D>& box) {
    for_each_cell(box, [&](const Index<D>& i) { insert(i, kOld); });
  }
  bool holds(const Index<D>& i) const { return bits_[static_cast<std::size_t>(linear_index(frame_, i))] != 0; }

  /// Adds the cells inside the domain that are read, through `offsets` and the boundary rules, to update this set
  /// `steps` times over. The frame must have room for them.
  void grow(const Offsets<D>& offsets, int steps, const BoundaryTopology<D>& around) {
    const bool open = around.wraps();  // nothing ends or mirrors: sets are shifted as a whole
    bool grows = true;
    for (int k = 0; k < steps && grows; ++k)
      if (open)
        grow_shifted(offsets);
      else
        grows = grow_by_cells(offsets, around, k == 0 ? kOld : kNew);
  }

  /// Disjoint boxes that make up the set: runs along the fastest dimension, equal neighbors merged.
  std::vector<Box<D>> boxes() const {
    std::vector<Box<D>> list;
    for_each_row(frame_, [&](Index<D> i) {
      for (bool inside = false; i[D - 1] < frame_.high[D - 1]; ++i[D - 1]) {
        if (!holds(i))
          inside = false;
        else if (std::exchange(inside, true))
          ++list.back().high[D - 1];
        else
          list.push_back(Box<D>::of_cell(i));
      }
    });
    for (int j = D - 2; j >= 0; --j) merge(list, j);
    return list;
  }

 private:
  static constexpr std::uint8_t kOld = 1, kNew = 2, kNext = 3;

  std::uint8_t& at(const Index<D>& i) { return bits_[static_cast<std::size_t>(linear_index(frame_, i))]; }
  void insert(const Index<D>& i, std::uint8_t mark) {
    if (frame_.contains(i) && !holds(i)) at(i) = mark;
  }

  void grow_shifted(const Offsets<D>& offsets) {
    std::vector<std::uint8_t> grown = bits_;
    const auto n = static_cast<std::int64_t>(bits_.size());
    for (const auto& o : offsets) {
      Index<D> origin = frame_.low;
      for (int j = 0; j < D; ++j) origin[j] += o[j];
      const std::int64_t shift = linear_index(frame_, origin);
      const std::uint8_t* const from = bits_.data();
      std::uint8_t* const to = grown.data() + shift;
      for (std::int64_t l = std::max<std::int64_t>(0, -shift); l < std::min(n, n - shift); ++l) to[l] |= from[l];
    }
    bits_ = std::move(grown);
  }

  /// Looks at `wanted` cells only: those that the step before has added. False when there are no more.
  bool grow_by_cells(const Offsets<D>& offsets, const BoundaryTopology<D>& around, std::uint8_t wanted) {
    for_each_cell(frame_, [&](const Index<D>& i) {
      if (at(i) != wanted) return;
      for (const auto& o : offsets) {
        Index<D> read;
        bool exists = true;
        for (int j = 0; j < D; ++j) exists = exists && resolve(j, i[j] + o[j], around, read[j]);
        if (exists) insert(read, kNext);
      }
    });
    for (std::uint8_t& b : bits_) b = b == kNext ? kNew : b == kNew ? kOld : b;
    return std::find(bits_.begin(), bits_.end(), kNew) != bits_.end();
  }

  /// The existing coordinate that a read of x means, false if it means no cell.
  static bool resolve(int j, std::int64_t x, const BoundaryTopology<D>& around, std::int64_t& to) {
    const std::int64_t low = around.global.low[j], high = around.global.high[j];
    to = x;
    if (around.periodic[j] || (x >= low && x < high)) return true;
    const std::int64_t gap = j == around.face ? 0 : 1;  // between a cell and its image, at the mirror
    to = x < low ? 2 * low - gap - x : 2 * high - 2 + gap - x;
    return (x < low ? around.mirror_low[j] : around.mirror_high[j]) && to >= low && to < high;
  }

  /// Joins boxes that continue each other in dimension j and agree in all others.
  static void merge(std::vector<Box<D>>& list, int j) {
    auto key = [j](Box<D> b) {
      b.low[j] = b.high[j] = 0;
      return std::make_pair(b.low, b.high);
    };
    std::sort(list.begin(), list.end(), [&](const Box<D>& a, const Box<D>& b) {
      const auto ka = key(a), kb = key(b);
      return ka != kb ? ka < kb : a.low[j] < b.low[j];
    });
    std::vector<Box<D>> out;
    for (const auto& b : list) {
      if (!out.empty() && out.back().high[j] == b.low[j] && key(out.back()) == key(b))
        out.back().high[j] = b.high[j];
      else
        out.push_back(b);
    }
    list = std::move(out);
  }

  Box<D> frame_;
  std::vector<std::uint8_t> bits_;  ///< not 0: in the set
};

}  // namespace isohalo
