#pragma once
/// Lists of boxes without common cells.

#include <vector>

#include "datatypes/box.hpp"

namespace isohalo::detail {

/// `boxes` without the cells of `hole`, as boxes.
template <int D>
std::vector<Box<D>> without(const std::vector<Box<D>>& boxes, const Box<D>& hole) {
  std::vector<Box<D>> rest;
  for (Box<D> b : boxes) {
    if (b.intersect(hole).empty()) {
      rest.push_back(b);
      continue;
    }
    for (int j = 0; j < D; ++j) {
      if (b.low[j] < hole.low[j]) {
        Box<D> below = b;
        below.high[j] = hole.low[j];
        rest.push_back(below);
        b.low[j] = hole.low[j];
      }
      if (b.high[j] > hole.high[j]) {
        Box<D> above = b;
        above.low[j] = hole.high[j];
        rest.push_back(above);
        b.high[j] = hole.high[j];
      }
    }
  }
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
