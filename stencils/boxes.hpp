#pragma once
/// Lists of boxes without common cells.

#include <vector>

#include "datatypes/box.hpp"

namespace isohalo::detail {

/// f(part) for boxes that have the cells of `b` which are not in `hole`.
template <int D, class F>
void for_each_box_without(Box<D> b, const Box<D>& hole, const F& f) {
  if (b.intersect(hole).empty()) return f(b);
  for (int j = 0; j < D; ++j) {
    if (b.low[j] < hole.low[j]) {
      Box<D> below = b;
      below.high[j] = b.low[j] = hole.low[j];
      f(below);
    }
    if (b.high[j] > hole.high[j]) {
      Box<D> above = b;
      above.low[j] = b.high[j] = hole.high[j];
      f(above);
    }
  }
}

/// `boxes` without the cells of `hole`, as boxes.
template <int D>
std::vector<Box<D>> without(const std::vector<Box<D>>& boxes, const Box<D>& hole) {
  std::vector<Box<D>> rest;
  for (const Box<D>& b : boxes) for_each_box_without(b, hole, [&](const Box<D>& part) { rest.push_back(part); });
  return rest;
}

/// The faces of dimension j of the cells in `boxes`, lower and upper ones, as boxes.
template <int D>
std::vector<Box<D>> faces_of(const std::vector<Box<D>>& boxes, int j) {
  std::vector<Box<D>> faces = boxes;  // face i is the lower one of cell i
  for (Box<D> b : boxes) {
    ++b.low[j];
    ++b.high[j];
    std::vector<Box<D>> upper{b};
    for (const Box<D>& lower : boxes) upper = without(upper, lower);
    faces.insert(faces.end(), upper.begin(), upper.end());
  }
  return faces;
}

}  // namespace isohalo::detail
