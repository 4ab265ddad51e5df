#pragma once
/// Boundary rules of a grid: what a stencil reads outside it (docs/model.md, "Outside cells").

#include "datatypes/box.hpp"

namespace isohalo {

enum class Boundary {
  periodic,   ///< wraps; on both sides of a dimension or on neither
  neumann,    ///< outside cell -1-i reads i, N+i reads N-1-i
  dirichlet,  ///< `value` at the face: 2 value - mirrored cell, second order
  fixed,      ///< outside cells hold `value`
};

struct BoundaryRule {
  Boundary kind = Boundary::periodic;
  double value = 0;
  bool mirrors() const { return kind == Boundary::neumann || kind == Boundary::dirichlet; }
};

/// One rule per side of each dimension.
template <int D>
struct BoundaryRules {
  PerDim<BoundaryRule, D> low{}, high{};

  PerDim<bool, D> periodic() const {
    PerDim<bool, D> p;
    for (int j = 0; j < D; ++j) p[j] = low[j].kind == Boundary::periodic;
    return p;
  }
  PerDim<bool, D> mirror_low() const { return mirrors(low); }
  PerDim<bool, D> mirror_high() const { return mirrors(high); }

 private:
  static PerDim<bool, D> mirrors(const PerDim<BoundaryRule, D>& side) {
    PerDim<bool, D> m;
    for (int j = 0; j < D; ++j) m[j] = side[j].mirrors();
    return m;
  }
};

}  // namespace isohalo
