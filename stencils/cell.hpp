#pragma once
/// What a cell function sees: the value of a field in a cell and around it.
///
/// Values are read as binary64 and results are rounded once to the field's type (docs/model.md, "Cell functions").

#include <Kokkos_Macros.hpp>
#include <array>
#include <cstdint>
#include <utility>

#include "datatypes/box.hpp"
#include "framework/domain/boundary_rules.hpp"

namespace isohalo {

/// What does not depend on the cell.
template <int D>
struct CellGeometry {
  Index<D> stride{};                   ///< of the fields; the last is 1
  PerDim<double, D> inverse_square{};  ///< 1 / (h_j h_j)
  PerDim<double, D> inverse{};         ///< 1 / h_j

  /// Elements from a cell to the one k cells along dimension j, or at an offset.
  KOKKOS_FUNCTION std::int64_t away(int j, int k) const { return j == D - 1 ? k : k * stride[j]; }
  KOKKOS_FUNCTION std::int64_t away(const Index<D>& offset) const {
    std::int64_t sum = offset[D - 1];
    for (int j = 0; j < D - 1; ++j) sum += offset[j] * stride[j];
    return sum;
  }
};

/// A field at one cell. Reads nothing but what its calls say.
template <class T, int D>
class Cell {
 public:
  static constexpr int dimensions = D;

  KOKKOS_FUNCTION Cell(const T* at, const CellGeometry<D>& geometry) : at_(at), geometry_(geometry) {}

  /// u(i).
  KOKKOS_FUNCTION double operator()() const { return static_cast<double>(*at_); }
  /// u(i + k e_j).
  KOKKOS_FUNCTION double near(int j, int k) const { return static_cast<double>(at_[geometry_.away(j, k)]); }
  /// u(i + offset).
  KOKKOS_FUNCTION double near(const Index<D>& offset) const {
    return static_cast<double>(at_[geometry_.away(offset)]);
  }
  KOKKOS_FUNCTION double inverse_square(int j) const { return geometry_.inverse_square[j]; }
  KOKKOS_FUNCTION double inverse(int j) const { return geometry_.inverse[j]; }

 protected:
  const T* at_;
  const CellGeometry<D>& geometry_;
};

/// The same with what a star of radius 1 reads loaded when it is made; what a function does not use the compiler leaves
/// out.
template <class T, int D>
class LoadedCell : public Cell<T, D> {
  using Base = Cell<T, D>;

 public:
  KOKKOS_FUNCTION LoadedCell(const T* at, const CellGeometry<D>& geometry)
      : Base(at, geometry), here_(Base::operator()()) {
    for (int j = 0; j < D; ++j) below_[j] = Base::near(j, -1), above_[j] = Base::near(j, 1);
  }

  KOKKOS_FUNCTION double operator()() const { return here_; }
  using Base::near;
  KOKKOS_FUNCTION double near(int j, int k) const {
    return k == 1 ? above_[j] : k == -1 ? below_[j] : Base::near(j, k);
  }

 private:
  double here_, below_[D], above_[D];
};

/// The same beside masked cells that mirror: where one of them is read, the cell itself is instead.
template <class T, int D>
class MirrorCell : public Cell<T, D> {
 public:
  /// `mask`: of the cell.
  KOKKOS_FUNCTION MirrorCell(const T* at, const T* mask, const CellGeometry<D>& geometry)
      : Cell<T, D>(at, geometry), mask_(mask) {}

  KOKKOS_FUNCTION double near(int j, int k) const { return value(this->geometry_.away(j, k)); }
  KOKKOS_FUNCTION double near(const Index<D>& offset) const { return value(this->geometry_.away(offset)); }

 private:
  KOKKOS_FUNCTION double value(std::int64_t away) const {
    return static_cast<double>(this->at_[mask_[away] != T(0) ? 0 : away]);
  }

  const T* mask_;
};

/// f(0) + f(1) + .. over the dimensions, from left to right. Written out, since a loop whose body is long would not
/// be unrolled, and cells not computed by vectors.
template <int D, class F>
KOKKOS_FUNCTION double sum_over_dimensions(const F& f) {
  double sum = f(0);
  [&]<int... J>(std::integer_sequence<int, J...>) {
    ((sum = sum + f(J + 1)), ...);
  }
  (std::make_integer_sequence<int, D - 1>());
  return sum;
}

/// a / b. Division takes as long as tens of other instructions: one by 1 is left out, with the same bits.
KOKKOS_FUNCTION inline double divided(double a, double b) {
  if (b == 1.0) return a;
  return a / b;
}

/// t_0 + t_1 + .., t_j = (1/(h_j h_j)) ((u(i-e_j) - 2 u(i)) + u(i+e_j)).
template <class C>
KOKKOS_FUNCTION double laplace(const C& u) {
  const double twice = 2.0 * u();
  return sum_over_dimensions<C::dimensions>(
      [&](int j) { return u.inverse_square(j) * ((u.near(j, -1) - twice) + u.near(j, 1)); });
}

/// ((u(i+e_j) - u(i-e_j)) (1/h_j)) 0.5.
template <class C>
KOKKOS_FUNCTION double slope(const C& u, int j) {
  return ((u.near(j, 1) - u.near(j, -1)) * u.inverse(j)) * 0.5;
}

/// (u(i) - u(i-e_j)) (1/h_j) where the velocity is above 0, else (u(i+e_j) - u(i)) (1/h_j).
template <class C>
KOKKOS_FUNCTION double upwind_slope(const C& u, int j, double velocity) {
  const double below = u() - u.near(j, -1), above = u.near(j, 1) - u();  // both, so that loops vectorise
  return (velocity > 0 ? below : above) * u.inverse(j);
}

/// The third-order difference that leans against the velocity, along dimension j:
/// w > 0: (((2 u(i+e_j) + 3 u(i)) - 6 u(i-e_j)) + u(i-2e_j)) ((1/h_j) / 6), else the negative of its mirror image.
template <class C>
KOKKOS_FUNCTION double biased_slope(const C& u, int j, double velocity) {
  const double up = u.near(j, 1), down = u.near(j, -1), up2 = u.near(j, 2), down2 = u.near(j, -2);
  const bool forward = velocity > 0;
  const double ahead = forward ? up : down, behind = forward ? down : up, behind2 = forward ? down2 : up2;
  const double slope = (((2.0 * ahead + 3.0 * u()) - 6.0 * behind) + behind2) * (u.inverse(j) / 6.0);
  return forward ? slope : -slope;
}

/// The same for a coefficient as the velocity. One that is the same everywhere says once for a whole loop which cells
/// are read; choosing among values in each cell takes half as long again.
template <class C, class V>
requires requires(const V& v) { v(); }
KOKKOS_FUNCTION double biased_slope(const C& u, int j, const V& velocity) {
  if constexpr (requires { V::kUniform; }) {
    const int ahead = velocity() > 0 ? 1 : -1;
    const double factor = ahead * (u.inverse(j) / 6.0);  // its sign is exact
    return (((2.0 * u.near(j, ahead) + 3.0 * u()) - 6.0 * u.near(j, -ahead)) + u.near(j, -2 * ahead)) * factor;
  } else {
    return biased_slope(u, j, velocity());
  }
}

/// The new values of all fields of a cell, in their order.
template <class... V>
KOKKOS_FUNCTION std::array<double, sizeof...(V)> cells(V... values) {
  return {static_cast<double>(values)...};
}

}  // namespace isohalo
