#pragma once
/// The reduction tree of version 1 written straight from its definition, on the whole grid, slowly.

#include <vector>

#include "datatypes/box.hpp"

namespace isohalo::test {

template <class V, int D, class Op>
V tile_by_definition(const Box<D>& global, const Index<D>& tile, const Index<D>& t, const std::vector<V>& values,
                     const Op& op) {
  Box<D> cells;
  for (int j = 0; j < D; ++j) {
    cells.low[j] = t[j] * tile[j];
    cells.high[j] = std::min(cells.low[j] + tile[j], global.high[j]);
  }
  std::vector<V> lanes;
  for_each_row(cells, [&](Index<D> i) {
    const bool first = lanes.empty();
    for (std::int64_t x = 0; x < cells.extent(D - 1); ++x, ++i[D - 1]) {
      const V v = values[static_cast<std::size_t>(linear_index(global, i))];
      if (first)
        lanes.push_back(v);
      else
        lanes[static_cast<std::size_t>(x)] = op(lanes[static_cast<std::size_t>(x)], v);
    }
  });
  for (std::int64_t h = tile[D - 1] / 2; h >= 1; h /= 2)
    for (std::int64_t l = 0; l < h; ++l)
      if (static_cast<std::size_t>(l + h) < lanes.size())
        lanes[static_cast<std::size_t>(l)] =
            op(lanes[static_cast<std::size_t>(l)], lanes[static_cast<std::size_t>(l + h)]);
  return lanes[0];
}

template <class V, int D, class Op>
V tree_by_definition(const Box<D>& global, const Index<D>& tile, const Box<D>& node, const std::vector<V>& values,
                     const Op& op) {
  int best = -1;
  std::int64_t longest = 0;
  for (int j = 0; j < D; ++j) {
    const std::int64_t cells = std::min(node.high[j] * tile[j], global.high[j]) - node.low[j] * tile[j];
    if (node.extent(j) > 1 && cells > longest) best = j, longest = cells;
  }
  if (best < 0) return tile_by_definition<V, D>(global, tile, node.low, values, op);
  std::int64_t half = 1;
  while (2 * half < node.extent(best)) half *= 2;
  Box<D> left = node, right = node;
  left.high[best] = right.low[best] = node.low[best] + half;
  const V a = tree_by_definition<V, D>(global, tile, left, values, op);
  return op(a, tree_by_definition<V, D>(global, tile, right, values, op));
}

template <class V, int D, class Op>
V reduce_by_definition(const Index<D>& shape, const Index<D>& tile, const std::vector<V>& values, const Op& op) {
  const Box<D> global = box_of_shape<D>(shape);
  Box<D> root;
  for (int j = 0; j < D; ++j) root.high[j] = (shape[j] + tile[j] - 1) / tile[j];
  return tree_by_definition<V, D>(global, tile, root, values, op);
}

}  // namespace isohalo::test
