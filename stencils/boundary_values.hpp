#pragma once
/// The values of a boundary rule's expression along one side of the grid.

#include <algorithm>
#include <utility>
#include <vector>

#include "datatypes/box.hpp"
#include "framework/domain/boundary_rules.hpp"
#include "framework/halo/array_ref.hpp"
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
    on_face_ = rule.kind == Boundary::fixed ? -1 : j;
    const bool hold = any_ && (!rule.expression->uses_time() || time == time_);
    if (hold && where.intersect(box_) == where) return;
    if (hold)
      for (int k = 0; k < D; ++k) {
        where.low[k] = std::min(where.low[k], box_.low[k]);
        where.high[k] = std::max(where.high[k], box_.high[k]);
      }
    older_.swap(values_);
    const Box<D> older_box = std::exchange(box_, where);
    const Index<D> older_stride = std::exchange(stride_, detail::c_strides(where));
    values_.resize(static_cast<std::size_t>(where.cells()));
    constexpr std::int64_t least_cells = 512;  // take longer than waking a thread
    // Rows normally, the next dimension where these are single cells: values lie side by side along both.
    const int inner = D > 1 && where.extent(D - 1) == 1 ? D - 2 : D - 1;
    for_each_share("isohalo::boundary_values", where, least_cells, [&](const Box<D>& part, std::int64_t) {
      Box<D> starts = part;
      starts.high[inner] = starts.low[inner] + 1;
      static thread_local std::vector<double> along;  // keeps its memory
      along.clear();
      for (std::int64_t c = part.low[inner]; c < part.high[inner]; ++c)
        along.push_back(coordinate(rules, global, inner, outward, c));
      for_each_cell(starts, [&](const Index<D>& i) {
        Box<D> row = Box<D>::of_cell(i);
        row.high[inner] = part.high[inner];
        double* const values = &values_[offset(i, box_, stride_)];
        if (hold && older_box.contains(row)) {
          std::copy_n(&older_[offset(i, older_box, older_stride)], along.size(), values);
          return;
        }
        PerDim<double, D> x;
        for (int k = 0; k < D; ++k) x[k] = coordinate(rules, global, k, outward, i[k]);
        rule.expression->row(x, inner, along, time, values);
      });
    });
    time_ = time;
    any_ = true;
  }

  /// The value for outside cell i; that of the next one in dimension k is stride(k) further.
  const double* at(const Index<D>& i) const { return values_.data() + offset(i, box_, stride_); }
  std::int64_t stride(int k) const { return stride_[k]; }

 private:
  std::size_t offset(const Index<D>& i, const Box<D>& box, const Index<D>& stride) const {
    std::int64_t at = 0;
    for (int k = 0; k < D; ++k)
      if (k != on_face_) at += (i[k] - box.low[k]) * stride[k];
    return static_cast<std::size_t>(at);
  }

  /// Coordinate k of a place: of the cell's centre, in periodic dimensions of the cell that it repeats; across the
  /// side of the face, unless the rule is about the outside cell itself.
  double coordinate(const BoundaryRules<D>& rules, const Box<D>& global, int k, int outward, std::int64_t i) const {
    if (k == on_face_) return outward < 0 ? rules.origin[k] : rules.origin[k] + rules.length[k];
    const std::int64_t n = global.extent(k);
    const std::int64_t c = rules.low[k].kind == Boundary::periodic ? ((i % n) + n) % n : i;
    const double h = rules.length[k] / static_cast<double>(n);
    return rules.origin[k] + (static_cast<double>(c) + 0.5) * h;
  }

  std::vector<double> values_, older_;
  Box<D> box_{};
  Index<D> stride_{};
  double time_ = 0;
  int on_face_ = -1;  ///< the dimension in which all places are on the face; -1: none
  bool any_ = false;
};

}  // namespace isohalo
