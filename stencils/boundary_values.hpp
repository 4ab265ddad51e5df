#pragma once
/// The values of a boundary rule's expression along one side of the grid.

#include <utility>
#include <vector>

#include "datatypes/box.hpp"
#include "framework/domain/boundary_rules.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/run/expression.hpp"

namespace isohalo {

/// Values in a box of places, kept while they hold: as long as the time is the same, and for ever if the expression
/// does not use it.
template <int D>
class BoundaryValues {
 public:
  /// Makes sure that the values of the rule beyond the side of dimension j (`outward` = -1: the lower one) are
  /// there for the outside cells of `where`; for a rule whose place is the face, `where` is one cell thick. Local.
  void bring(const BoundaryRules<D>& rules, const Box<D>& global, int j, int outward, Box<D> where, double time) {
    const BoundaryRule& rule = outward < 0 ? rules.low[j] : rules.high[j];
    if (evaluators_.empty()) {
      evaluators_.assign(static_cast<std::size_t>(host_threads()), ExpressionValue(*rule.expression));
      uses_time_ = rule.expression->uses_time();
      on_face_ = rule.kind == Boundary::fixed ? -1 : j;
    }
    const bool hold = any_ && (!uses_time_ || time == time_);
    if (hold && where.intersect(box_) == where) return;
    if (hold)
      for (int k = 0; k < D; ++k) {
        where.low[k] = std::min(where.low[k], box_.low[k]);
        where.high[k] = std::max(where.high[k], box_.high[k]);
      }
    older_.swap(values_);
    const Box<D> older_box = std::exchange(box_, where);
    const Index<D> older_stride = std::exchange(stride_, strides(where));
    values_.resize(static_cast<std::size_t>(where.cells()));
    constexpr std::int64_t least_cells = 512;  // take longer than waking a thread
    for_each_share("isohalo::boundary_values", where, least_cells, [&](const Box<D>& part, std::int64_t k) {
      ExpressionValue& evaluate = evaluators_[static_cast<std::size_t>(k)];
      for_each_cell(part, [&](const Index<D>& i) {
        values_[offset(i, box_, stride_)] = hold && older_box.contains(i)
                                                ? older_[offset(i, older_box, older_stride)]
                                                : evaluate(place(rules, global, j, outward, i), time);
      });
    });
    time_ = time;
    any_ = true;
  }

  /// The value for outside cell i; that of the next one in dimension k is stride(k) further.
  const double* at(const Index<D>& i) const { return values_.data() + offset(i, box_, stride_); }
  std::int64_t stride(int k) const { return stride_[k]; }

 private:
  static Index<D> strides(const Box<D>& box) {
    Index<D> s;
    std::int64_t n = 1;
    for (int k = D - 1; k >= 0; --k) s[k] = n, n *= box.extent(k);
    return s;
  }
  std::size_t offset(const Index<D>& i, const Box<D>& box, const Index<D>& stride) const {
    std::int64_t at = 0;
    for (int k = 0; k < D; ++k)
      if (k != on_face_) at += (i[k] - box.low[k]) * stride[k];
    return static_cast<std::size_t>(at);
  }

  /// Centres, in periodic dimensions of the cell that i repeats; in dimension j the face unless the rule is about
  /// the outside cell itself.
  PerDim<double, D> place(const BoundaryRules<D>& rules, const Box<D>& global, int j, int outward,
                          const Index<D>& i) const {
    PerDim<double, D> x;
    for (int k = 0; k < D; ++k) {
      const std::int64_t n = global.extent(k);
      const std::int64_t c = rules.low[k].kind == Boundary::periodic ? ((i[k] % n) + n) % n : i[k];
      const double h = rules.length[k] / static_cast<double>(n);
      x[k] = rules.origin[k] + (static_cast<double>(c) + 0.5) * h;
    }
    if (on_face_ >= 0) x[j] = outward < 0 ? rules.origin[j] : rules.origin[j] + rules.length[j];
    return x;
  }

  std::vector<ExpressionValue> evaluators_;  ///< of each thread
  std::vector<double> values_, older_;
  Box<D> box_{};
  Index<D> stride_{};
  double time_ = 0;
  int on_face_ = -1;  ///< the dimension in which all places are on the face; -1: none
  bool uses_time_ = false, any_ = false;
};

}  // namespace isohalo
