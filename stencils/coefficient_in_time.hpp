#pragma once
/// A coefficient that depends on the time, and what of it does not and is kept.

#include <array>
#include <cstdint>
#include <vector>

#include "framework/halo/array_ref.hpp"
#include "framework/halo/field.hpp"
#include "framework/run/solver.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

template <int D>
class CoefficientInTime {
 public:
  /// Coefficient `index` of a stepper; `cells`: all that may get values. Local.
  CoefficientInTime(std::size_t index, const ValuesInTime<D>& values, const Box<D>& cells)
      : index_(index), values_(values) {
    for (const auto& part : values.steady) {
      Box<D> box = cells;
      for (int j = 0; j < D; ++j)
        if (!part.depends_on[j]) box.high[j] = box.low[j] + 1;
      fields_.emplace_back("steady part", box, Index<D>{}, Index<D>{});
      ArrayRef<double, D> kept = fields_.back().ref();
      for_each_row_of("isohalo::steady", box,
                      [&](const Index<D>& i, std::int64_t n) { part.row(i, n, 0, nullptr, &kept.at(i)); });
      for (int j = 0; j < D; ++j)
        if (!part.depends_on[j]) kept.stride[j] = 0;
      kept_.push_back(kept);
    }
  }

  std::size_t index() const { return index_; }

  /// Those of this time in `cells`, a SweepRegion or a box, each rounded to T. Fences. Local.
  template <class T, class Cells>
  void give(const ArrayRef<T, D>& u, const Cells& cells, double time) const {
    for_each_row_of("isohalo::source", cells, [&](const Index<D>& i, std::int64_t n) {
      static thread_local std::vector<double> exact;
      exact.resize(static_cast<std::size_t>(n));
      std::array<const double*, ValuesInTime<D>::kMostParts> steady{};
      for (std::size_t k = 0; k < kept_.size(); ++k) steady[k] = &kept_[k].at(i);
      values_.row(i, n, time, steady.data(), exact.data());
      T* const row = &u.at(i);
      for (std::int64_t x = 0; x < n; ++x) row[x] = static_cast<T>(exact[static_cast<std::size_t>(x)]);
    });
  }

 private:
  std::size_t index_;
  ValuesInTime<D> values_;
  std::vector<Field<double, D>> fields_;
  std::vector<ArrayRef<double, D>> kept_;  ///< with strides of 0 along dimensions that they do not depend on
};

}  // namespace isohalo
