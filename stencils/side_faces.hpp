#pragma once
/// Faces at the sides of the grid, where boundary rules give the values of a field on faces (docs/model.md,
/// "Solvers with fields on faces").

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "framework/domain/boundary_rules.hpp"
#include "stencils/boundary_values.hpp"

namespace isohalo {

namespace detail {

/// The outermost faces of one side of the grid, whose values may be given: those of dimension j there.
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
  /// Do the given values depend on the place, or on the time too?
  bool vary() const { return given_ && rule().expression; }
  bool vary_in_time() const { return vary() && rule().expression->uses_time(); }

  /// Those of these faces that lie at cells of `cells`.
  Box<D> at(Box<D> cells) const {
    cells.low[j_] = std::max(cells.low[j_], face_);
    cells.high[j_] = std::min(cells.high[j_] + 1, face_ + 1);
    return cells;
  }
  /// Makes sure that the values of this time are there at `cells`. Local.
  void bring(const Box<D>& cells, double time) {
    if (const Box<D> faces = at(cells); vary() && !faces.empty())
      values_.bring(rules_, global_, j_, outward_, faces, time);
  }
  /// What face i is given.
  double value(const Index<D>& i) const { return vary() ? *values_.at(i) : rule().value; }

 private:
  const BoundaryRule& rule() const { return outward_ < 0 ? rules_.low[j_] : rules_.high[j_]; }

  bool given_ = false;
  BoundaryRules<D> rules_;  ///< of the field on them; places are on the face
  Box<D> global_{};
  int j_ = 0, outward_ = -1;
  std::int64_t face_ = 0;
  BoundaryValues<D> values_;
};

/// Of each dimension, the lower and the upper ones, by the rules of its field.
template <int D>
PerDim<std::array<SideFaces<D>, 2>, D> faces_at_sides(std::span<const BoundaryRules<D>> rules,
                                                      const Box<D>& global) {
  PerDim<std::array<SideFaces<D>, 2>, D> sides;
  for (int j = 0; j < D; ++j)
    for (const bool low : {true, false})
      sides[j][low ? 0 : 1] = SideFaces<D>(rules[static_cast<std::size_t>(j)], global, j, low);
  return sides;
}

}  // namespace detail

}  // namespace isohalo
