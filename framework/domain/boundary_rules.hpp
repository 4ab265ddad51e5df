#pragma once
/// Boundary rules of a grid: what a stencil reads outside it (docs/model.md, "Outside cells").

#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datatypes/box.hpp"

namespace isohalo {

class Expression;  // framework/run/expression.hpp

/// What outside cells hold; m is the value of the mirrored cell, delta the distance of the two centres.
enum class Boundary {
  periodic,   ///< wraps; on both sides of a dimension or on neither
  neumann,    ///< m + delta value, `value` being the outward gradient; without one outside cell -1-i reads i
  dirichlet,  ///< `value` at the face: 2 value - m, second order
  fixed,      ///< `value`
  robin,      ///< a u + b du/dn = value at the face
  own,        ///< what the function of a rule of one's own makes of them
};

/// One outside cell, as the function of a rule of one's own sees it.
struct OutsideCell {
  double mirrored = 0;                 ///< value of the mirrored cell; 0 if the rule does not mirror
  double distance = 0;                 ///< (2 k + 1) h for the k-th layer: between the two cells' centres
  double value = 0;                    ///< the rule's `value`, at this place and time
  std::span<const double> parameters;  ///< its other keys, in their order
};

/// A kind of boundary rule. In an input: "NAME" where it needs nothing, {NAME = VALUE} where it needs a value
/// alone, {NAME = {KEY = NUMBER, .., value = VALUE}} where it has parameters. VALUE is a number or an expression.
struct BoundaryKind {
  std::string name;
  std::vector<std::string> parameters{};  ///< constants besides `value`; all must be given
  bool needs_value = false;               ///< else it is 0 where it is not given
  bool mirrors = true;                    ///< does an outside cell depend on the mirrored one?
  /// What the outside cell holds, in binary64; it is rounded once to the field's type. A function of its argument
  /// alone; called from several threads.
  std::function<double(const OutsideCell&)> outside{};
  /// What is wrong with these parameters, or nothing.
  std::function<std::string(std::span<const double>)> problem{};
  Boundary kind = Boundary::own;
};

/// What is wrong with the two parameters of robin, or nothing.
inline std::string problem_of_robin(std::span<const double> ab) {
  return ab[0] >= 0 && ab[1] >= 0 && ab[0] + ab[1] > 0 && std::isfinite(ab[0] + ab[1])
             ? ""
             : "a and b must not be negative, and not both 0";
}

struct BoundaryRule {
  Boundary kind = Boundary::periodic;
  double value = 0;
  std::shared_ptr<const Expression> expression;  ///< if there is one, it gives the value
  std::vector<double> parameters;                ///< of robin: a, b
  std::shared_ptr<const BoundaryKind> own;       ///< of Boundary::own

  BoundaryRule() = default;
  explicit(false) BoundaryRule(Boundary its_kind, double its_value = 0) : kind(its_kind), value(its_value) {}

  bool mirrors() const { return own ? own->mirrors : kind != Boundary::periodic && kind != Boundary::fixed; }
  /// A neumann side that is no plain copy.
  bool has_gradient() const { return kind == Boundary::neumann && (expression || value != 0); }
};

/// One rule per side of each dimension, and where the grid lies.
template <int D>
struct BoundaryRules {
  PerDim<BoundaryRule, D> low{}, high{};
  /// Of the domain; read by expressions, by given gradients and by rules of one's own.
  PerDim<double, D> origin{}, length{};

  PerDim<bool, D> periodic() const {
    PerDim<bool, D> p;
    for (int j = 0; j < D; ++j) p[j] = low[j].kind == Boundary::periodic;
    return p;
  }
  PerDim<bool, D> mirror_low() const { return mirrors(low); }
  PerDim<bool, D> mirror_high() const { return mirrors(high); }

  /// The same with 0 for every value: what differences of two fields with these rules obey (no rules of one's own).
  BoundaryRules homogeneous() const {
    BoundaryRules rules = *this;
    for (auto* side : {&rules.low, &rules.high})
      for (BoundaryRule& rule : *side) rule.value = 0, rule.expression = nullptr;
    return rules;
  }

 private:
  static PerDim<bool, D> mirrors(const PerDim<BoundaryRule, D>& side) {
    PerDim<bool, D> m;
    for (int j = 0; j < D; ++j) m[j] = side[j].mirrors();
    return m;
  }
};

}  // namespace isohalo
