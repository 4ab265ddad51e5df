#pragma once
/// A set of cells as bits, for stencils without a name. Exact, and small because large blocks are shrunk before.

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
    for_each_cell(box, [&](const Index<D>& i) { insert(i); });
  }

  /// The cells inside the domain that are read, through `offsets` and the boundary rules, to update this set.
  CellSet read_by(const Offsets<D>& offsets, const Surroundings<D>& around) const {
    CellSet out(frame_);
    for_each_cell(frame_, [&](const Index<D>& i) {
      if (!holds(i)) return;
      for (const auto& o : offsets) {
        Index<D> read;
        bool exists = true;
        for (int j = 0; j < D; ++j) exists = exists && resolve(j, i[j] + o[j], around, read[j]);
        if (exists) out.insert(read);
      }
    });
    return out;
  }

  /// Disjoint boxes that make up the set: runs along the fastest dimension, equal neighbors merged.
  std::vector<Box<D>> boxes() const {
    std::vector<Box<D>> list;
    for_each_row(frame_, [&](Index<D> i) {
      while (i[D - 1] < frame_.high[D - 1]) {
        if (!holds(i)) {
          ++i[D - 1];
          continue;
        }
        Box<D> run;
        run.low = i;
        while (i[D - 1] < frame_.high[D - 1] && holds(i)) ++i[D - 1];
        for (int j = 0; j < D; ++j) run.high[j] = run.low[j] + 1;
        run.high[D - 1] = i[D - 1];
        list.push_back(run);
      }
    });
    for (int j = D - 2; j >= 0; --j) merge(list, j);
    return list;
  }

 private:
  void insert(const Index<D>& i) {
    if (frame_.contains(i)) bits_[static_cast<std::size_t>(linear_index(frame_, i))] = 1;
  }
  bool holds(const Index<D>& i) const { return bits_[static_cast<std::size_t>(linear_index(frame_, i))] != 0; }

  /// The existing coordinate that a read of x means, false if it means no cell.
  static bool resolve(int j, std::int64_t x, const Surroundings<D>& around, std::int64_t& to) {
    const std::int64_t low = around.global.low[j], high = around.global.high[j];
    to = x;
    if (around.periodic[j] || (x >= low && x < high)) return true;
    to = x < low ? 2 * low - 1 - x : 2 * high - 1 - x;
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
  std::vector<std::uint8_t> bits_;
};

}  // namespace isohalo
