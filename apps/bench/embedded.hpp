#pragma once
/// A user's program: a time loop and a loop over rows of its own; of ours what isohalo/halo.hpp has.

#include <functional>
#include <utility>

#include "framework/halo/grid_array.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/row_sweep.hpp"

namespace isohalo {

/// `Row` takes the row in the old array and in the new one.
template <int D, class Row>
class Embedded {
 public:
  /// Collective.
  Embedded(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : halo_(domain, StencilShape<D>::star(1), 1),
        sweep_(StencilShape<D>::star(1)),
        now_(domain.owned(), 1),
        next_(domain.owned(), 1),
        row_(make(now_.ref().stride)) {}

  double& at(const Index<D>& i, std::size_t = 0) { return now_.at(i); }

  void advance(std::int64_t steps) {
    for (std::int64_t s = 0; s < steps; ++s) {
      halo_.exchange(now_.ref());
      sweep_({now_.ref().owned}, now_.ref(), next_.ref(), row_);
      std::swap(now_, next_);
    }
  }

 private:
  HaloPlan<D> halo_;
  RowSweep<double, D> sweep_;
  GridArray<double, D> now_, next_;
  Row row_;
};

}  // namespace isohalo
