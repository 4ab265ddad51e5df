#pragma once
/// Regions of a halo: boxes whose corner is cut by a simplex.
///
/// A deep halo of a Moore stencil needs boxes; that of a von Neumann or star stencil needs, in the corners,
/// triangles (2-D), prisms of triangles and tetrahedra (3-D), and so on: "simplex prisms". One description covers
/// them all and drives datatypes, copies and packing alike. It is closed under clipping and shifting.

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "datatypes/box.hpp"

namespace isohalo {

/// The cells of `box` whose depths fit the budget: sum over dimensions with side[j] != 0 of ceil(depth_j / granule)
/// <= budget, where depth_j is 1 for the layer next to the block and counts away from it.
/// With no sides it is the box itself.
template <int D>
struct Region {
  static constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max() / 4;

  Box<D> box;
  PerDim<std::int8_t, D> side{};  ///< -1 below the block, +1 above it, 0 beside no face: full extent
  Index<D> edge{};                ///< first cell above the block (+1) or first cell of the block (-1)
  std::int64_t granule = 1;       ///< cells per unit of budget: 1 for an L1 ball, the radius for a star
  std::int64_t budget = no_limit;

  static Region whole(const Box<D>& b) { return Region{b, {}, {}, 1, no_limit}; }

  bool is_box() const { return budget >= no_limit; }

  /// Units of budget that coordinate x in dimension j uses.
  std::int64_t cost(int j, std::int64_t x) const {
    if (side[j] == 0) return 0;
    const std::int64_t depth = side[j] > 0 ? x - edge[j] + 1 : edge[j] - x;
    return (depth + granule - 1) / granule;
  }

  /// Coordinates of dimension j within `box` that use at most `left` units: a half-open interval, perhaps empty.
  std::array<std::int64_t, 2> affordable(int j, std::int64_t left) const {
    if (side[j] == 0 || is_box()) return {box.low[j], box.high[j]};
    const std::int64_t reach = left > 0 ? left * granule : 0;
    if (side[j] > 0) return {box.low[j], std::min(box.high[j], edge[j] + reach)};
    return {std::max(box.low[j], edge[j] - reach), box.high[j]};
  }

  bool contains(const Index<D>& i) const {
    if (!box.contains(i)) return false;
    if (is_box()) return true;
    std::int64_t used = 0;
    for (int j = 0; j < D; ++j) used += cost(j, i[j]);
    return used <= budget;
  }

  Region shifted(const Index<D>& by) const {
    Region r = *this;
    r.box = box.shifted(by);
    for (int j = 0; j < D; ++j) r.edge[j] += by[j];
    return r;
  }

  bool empty() const {
    if (box.empty()) return true;
    if (is_box()) return false;
    std::int64_t least = 0;
    for (int j = 0; j < D; ++j) least += side[j] > 0 ? cost(j, box.low[j]) : cost(j, box.high[j] - 1);
    return least > budget;
  }

  /// The dimensions cut by the simplex, slowest first.
  std::vector<int> cut_dimensions() const {
    std::vector<int> dims;
    if (!is_box())
      for (int j = 0; j < D; ++j)
        if (side[j] != 0) dims.push_back(j);
    return dims;
  }

  /// Calls f(box) for disjoint boxes that make up the region, in one fixed order that does not depend on the layout
  /// of any array. The last cut dimension keeps a range, so there are O(depth^(cuts-1)) of them, whatever the
  /// extents.
  template <class F>
  void for_each_box(F&& f) const {
    if (!empty()) descend(cut_dimensions(), 0, budget, box, f);
  }

  std::int64_t cells() const {
    std::int64_t n = 0;
    for_each_box([&](const Box<D>& b) { n += b.cells(); });
    return n;
  }

 private:
  template <class F>
  void descend(const std::vector<int>& cuts, std::size_t k, std::int64_t left, Box<D> b, F& f) const {
    if (k == cuts.size()) return f(static_cast<const Box<D>&>(b));
    const int j = cuts[k];
    const auto [low, high] = affordable(j, left);
    const std::int64_t step = k + 1 < cuts.size() ? 1 : high - low;
    for (std::int64_t x = low; x < high; x += step) {
      b.low[j] = x;
      b.high[j] = x + step;
      descend(cuts, k + 1, left - cost(j, x), b, f);
    }
  }
};

}  // namespace isohalo
