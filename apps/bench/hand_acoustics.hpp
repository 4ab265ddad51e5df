#pragma once
/// The hand-written opponent of kind = "acoustics", periodic, with numbers for density and bulk modulus.

#include <array>
#include <cstdint>
#include <vector>

#include "apps/bench/hand_grid.hpp"

namespace isohalo {

/// p in cells, v_j in the faces below them. One sweep a step: the pressure of a plane as soon as the velocities of
/// the next one no longer need its old values. The faces that other ranks have as well are computed twice, so only
/// p is exchanged. docs/model.md has the order of the operations.
template <int D>
class HandAcoustics final : public HandSteps<double, D> {
 public:
  /// `a`, `b`: the factors of the velocities and of the pressure. Local.
  HandAcoustics(const CartesianDomain<D>& domain, const PerDim<double, D>& a, const PerDim<double, D>& b)
      : grid_(domain, 1), a_(a), b_(b), low_(domain.owned().low), cells_(domain.owned().extents()) {
    for (int f = 0; f <= D; ++f) fields_.push_back(grid_.array());
  }

  double& at(const Index<D>& i, std::size_t f) override { return array(f)[grid_.place(i)]; }
  void start() override {
    for (std::size_t f = 0; f <= D; ++f) grid_.exchange(array(f));
  }

  void advance(std::int64_t steps) override {
    for (; steps > 0; --steps) {
      grid_.exchange(array(0));
      for (std::int64_t plane = 0; plane <= cells_[0]; ++plane) {
        for_each_row(plane, 0, [&](std::int64_t k) { velocity(0, k, cells_[D - 1]); });
        if (plane < cells_[0]) {
          if constexpr (D == 3) for_each_row(plane, 1, [&](std::int64_t k) { velocity(1, k, cells_[2]); });
          for_each_row(plane, 0, [&](std::int64_t k) { velocity(D - 1, k, cells_[D - 1] + 1); });
        }
        if (plane > 0) for_each_row(plane - 1, 0, [&](std::int64_t k) { pressure(k, cells_[D - 1]); });
      }
    }
  }

 private:
  double* array(std::size_t f) { return &fields_[f].ref().at({0}); }

  /// f(place) for the rows of a plane, and `more` behind them.
  template <class F>
  void for_each_row(std::int64_t plane, std::int64_t more, const F& f) const {
    Index<D> i = low_;
    i[0] += plane;
    if constexpr (D == 2)
      f(grid_.place(i));
    else
      for (std::int64_t row = 0; row < cells_[1] + more; ++row, ++i[1]) f(grid_.place(i));
  }
  void velocity(int j, std::int64_t k, std::int64_t n) {
    const double* __restrict const p = array(0) + k;
    double* __restrict const v = array(static_cast<std::size_t>(j) + 1) + k;
    const std::int64_t s = grid_.stride()[j];
    const double a = a_[j];
    for (std::int64_t x = 0; x < n; ++x) v[x] = v[x] - a * (p[x] - p[x - s]);
  }
  void pressure(std::int64_t k, std::int64_t n) {
    double* __restrict const p = array(0) + k;
    const double* __restrict const v0 = array(1) + k, * __restrict const v1 = array(2) + k, * __restrict const v2 = array(D) + k;
    const std::int64_t s0 = grid_.stride()[0], s1 = D == 2 ? 1 : grid_.stride()[1];
    const double b0 = b_[0], b1 = b_[1], b2 = b_[D - 1];
    for (std::int64_t x = 0; x < n; ++x) {
      double sum = b0 * (v0[x + s0] - v0[x]) + b1 * (v1[x + s1] - v1[x]);
      if constexpr (D == 3) sum = sum + b2 * (v2[x + 1] - v2[x]);
      p[x] = p[x] - sum;
    }
  }

  HandGrid<double, D> grid_;
  PerDim<double, D> a_, b_;
  Index<D> low_, cells_;
  std::vector<typename HandGrid<double, D>::Array> fields_;  ///< p, v0, v1, ..
};

}  // namespace isohalo
