#pragma once
/// The kinds of steps that `bench sweep` and `bench temporal` measure.

#include <functional>
#include <string>
#include <vector>

#include "apps/bench/hand_written.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "stencils/row_kernels.hpp"

namespace isohalo {

/// One kind of step on one grid: our kernel, and the same expression written by hand.
template <int D, class Row, class HandRow>
struct Case {
  std::string name;
  Index<D> shape;
  StencilShape<D> stencil;
  std::function<Row(const Index<D>&)> make_row;
  std::function<HandRow(const Index<D>&)> make_hand;
};

template <int D>
auto heat_case(const std::string& name, const Index<D>& shape) {
  PerDim<double, D> k;
  for (int j = 0; j < D; ++j) k[j] = 0.1 + 0.01 * j;
  return Case<D, HeatRow<double, D>, HandHeatRow<D>>{name, shape, StencilShape<D>::star(1),
                                                     [k](const Index<D>& s) { return HeatRow<double, D>(k, s); },
                                                     [k](const Index<D>& s) {
                                                       return HandHeatRow<D>{k, s};
                                                     }};
}

template <int D>
auto box_case(const std::string& name, const Index<D>& shape) {
  constexpr int n = D == 2 ? 9 : 27;
  const Offsets<D> offsets = moore<D>(1, Self::include);
  std::vector<double> weights;
  for (int k = 0; k < n; ++k) weights.push_back(1.0 / n + 0.0001 * k);
  return Case<D, WeightedRow<double>, HandBoxRow<D>>{
      name, shape, StencilShape<D>::moore(1),
      [=](const Index<D>& s) { return WeightedRow<double>::of<D>(offsets, weights, s); },
      [=](const Index<D>& s) { return HandBoxRow<D>(weights, s); }};
}

}  // namespace isohalo
