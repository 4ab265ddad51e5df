#pragma once
/// kind = "acoustics" (docs/model.md): what its input says, what a cell and a face become, and the faces at the
/// sides of the grid; for the host's rows and for devices.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/halo/faces.hpp"
#include "framework/run/initial.hpp"
#include "framework/run/solver.hpp"
#include "stencils/boundary_values.hpp"
#include "stencils/cell.hpp"
#include "stencils/row_kernels.hpp"

namespace isohalo {

template <int D>
struct AcousticsEquation {
  GridSettings<D> grid;
  double density = 1, bulk_modulus = 1, dt = 0;
  /// Density and bulk modulus by cell; empty: both are the numbers above.
  std::vector<InitialField<D>> given{};

  /// The longest step by the greatest speed of sound that these extremes allow.
  double stable_dt(double least_density, double largest_modulus) const {
    double sum = 0;
    for (int j = 0; j < D; ++j) sum = sum + 1 / (grid.spacing[j] * grid.spacing[j]);
    return 1 / (std::sqrt(largest_modulus / least_density) * std::sqrt(sum));
  }
  /// v's factor a and p's factor b of dimension j, where both coefficients are numbers.
  double a(int j) const { return (dt / density) / grid.spacing[j]; }
  double b(int j) const { return (dt * bulk_modulus) / grid.spacing[j]; }

  const BoundaryRules<D>& pressure_rules() const { return grid.boundary_of(0); }
  const BoundaryRules<D>& velocity_rules(int j) const { return grid.boundary_of(static_cast<std::size_t>(j) + 1); }
};

/// "p", "v0", "v1", ..
inline std::vector<std::string> acoustics_fields(int dimensions) {
  std::vector<std::string> names{"p"};
  for (int j = 0; j < dimensions; ++j) names.push_back("v" + std::to_string(j));
  return names;
}

namespace detail {

/// v' of a face between two cells.
KOKKOS_FUNCTION inline double moved_velocity(double v, double a, double p, double p_below) {
  return v - a * (p - p_below);
}
/// a of a face between cells of these densities.
KOKKOS_FUNCTION inline double velocity_factor(double rho, double rho_below, double dt, double h) {
  return divided(dt / (0.5 * (rho_below + rho)), h);
}
/// p' of a cell: of dimension j the factor b(j), and v_j(i+e_j) - v_j(i) = rise(j).
template <int D, class Factor, class Rise>
KOKKOS_FUNCTION double moved_pressure(double p, const Factor& b, const Rise& rise) {
  double sum = b(0) * rise(0);
  for (int j = 1; j < D; ++j) sum = sum + b(j) * rise(j);
  return p - sum;
}

/// A velocity in the faces of one dimension, k elements behind the first owned one; all arrays have its strides.
template <class T, bool Given>
struct VelocityUpdate {
  T* v;
  const T *p, *rho;    ///< rho: `Given`
  std::int64_t below;  ///< elements to the face below
  double a, dt, h;

  using Values = T;
  KOKKOS_FUNCTION T values(const std::int64_t k) const {
    double factor = a;
    if constexpr (Given)
      factor = velocity_factor(static_cast<double>(rho[k]), static_cast<double>(rho[k - below]), dt, h);
    return static_cast<T>(moved_velocity(static_cast<double>(v[k]), factor, static_cast<double>(p[k]),
                                         static_cast<double>(p[k - below])));
  }
  KOKKOS_FUNCTION void store(const std::int64_t k, T to) const { v[k] = to; }
  KOKKOS_FUNCTION double term(const std::int64_t k, T to) const { return squared_change(to, v[k]); }
};

/// The pressure.
template <class T, int D, bool Given>
struct PressureUpdate {
  T* p;
  const T *v[D], *modulus;  ///< modulus: `Given`
  std::int64_t above[D];    ///< elements to the face above
  double b[D], dt, h[D];

  using Values = T;
  /// Rows are contiguous; said as a constant it lets rows be in vectors.
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return j == D - 1 ? 1 : above[j]; }
  KOKKOS_FUNCTION T values(const std::int64_t k) const {
    double dt_modulus = 0;
    if constexpr (Given) dt_modulus = dt * static_cast<double>(modulus[k]);
    const auto factor = [&](int j) { return Given ? divided(dt_modulus, h[j]) : b[j]; };
    const auto rise = [&](int j) {
      return static_cast<double>(v[j][k + stride(j)]) - static_cast<double>(v[j][k]);
    };
    return static_cast<T>(moved_pressure<D>(static_cast<double>(p[k]), factor, rise));
  }
  KOKKOS_FUNCTION void store(const std::int64_t k, T to) const { p[k] = to; }
  KOKKOS_FUNCTION double term(const std::int64_t k, T to) const { return squared_change(to, p[k]); }
};

template <bool Given, class T, int D>
VelocityUpdate<T, Given> velocity_update(const AcousticsEquation<D>& equation, int j, const ArrayRef<T, D>& v,
                                         const ArrayRef<T, D>& p, const T* rho) {
  return {v.data, p.data, rho, p.stride[j], equation.a(j), equation.dt, equation.grid.spacing[j]};
}
/// velocity(j): the array of that dimension.
template <bool Given, class T, int D, class Velocity>
PressureUpdate<T, D, Given> pressure_update(const AcousticsEquation<D>& equation, const Velocity& velocity,
                                            const ArrayRef<T, D>& p, const T* modulus) {
  PressureUpdate<T, D, Given> update{p.data, {}, modulus, {}, {}, equation.dt, {}};
  for (int j = 0; j < D; ++j) {
    update.v[j] = velocity(j).data;
    update.above[j] = p.stride[j];
    update.b[j] = equation.b(j);
    update.h[j] = equation.grid.spacing[j];
  }
  return update;
}

/// The outermost faces of one side of the grid, whose velocity may be given: those of dimension j there.
template <int D>
class SideFaces {
 public:
  SideFaces() = default;
  SideFaces(BoundaryRules<D> rules, const Box<D>& global, int j, bool low)
      : rules_(std::move(rules)), global_(global), j_(j), outward_(low ? -1 : 1), face_(low ? 0 : global.high[j]) {
    for (auto* side : {&rules_.low, &rules_.high})
      if ((*side)[j].kind == Boundary::fixed) (*side)[j].kind = Boundary::dirichlet;  // both are about the face
    given_ = rule().kind == Boundary::dirichlet;
  }

  bool given() const { return given_; }
  /// Index of these faces in dimension j.
  std::int64_t face() const { return face_; }
  /// Do the given velocities depend on the place, or on the time too?
  bool vary() const { return given_ && rule().expression; }
  bool vary_in_time() const { return vary() && rule().expression->uses_time(); }

  /// Those of these faces that lie at cells of `cells`.
  Box<D> at(Box<D> cells) const {
    cells.low[j_] = std::max(cells.low[j_], face_);
    cells.high[j_] = std::min(cells.high[j_] + 1, face_ + 1);
    return cells;
  }
  /// Makes sure that the velocities of this time are there at `cells`. Local.
  void bring(const Box<D>& cells, double time) {
    if (const Box<D> faces = at(cells); vary() && !faces.empty())
      values_.bring(rules_, global_, j_, outward_, faces, time);
  }
  /// What face i is given.
  double value(const Index<D>& i) const { return vary() ? *values_.at(i) : rule().value; }

 private:
  const BoundaryRule& rule() const { return outward_ < 0 ? rules_.low[j_] : rules_.high[j_]; }

  bool given_ = false;
  BoundaryRules<D> rules_;  ///< of the velocity; places are on the face
  Box<D> global_{};
  int j_ = 0, outward_ = -1;
  std::int64_t face_ = 0;
  BoundaryValues<D> values_;
};

/// Of each dimension, the lower and the upper ones.
template <int D>
PerDim<std::array<SideFaces<D>, 2>, D> faces_at_sides(const AcousticsEquation<D>& equation, const Box<D>& global) {
  PerDim<std::array<SideFaces<D>, 2>, D> sides;
  for (int j = 0; j < D; ++j)
    for (const bool low : {true, false})
      sides[j][low ? 0 : 1] = SideFaces<D>(equation.velocity_rules(j), global, j, low);
  return sides;
}

}  // namespace detail

/// The solver, its fields in the memory of DeviceSpace (device_field.hpp). The rules are none of one's own.
/// Collective in order.
template <class T, int D>
std::unique_ptr<Solver<D>> make_acoustics_on_device(const CartesianDomain<D>& domain,
                                                    const AcousticsEquation<D>& equation, int depth,
                                                    Exchange exchange);

}  // namespace isohalo
