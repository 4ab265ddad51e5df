#pragma once
/// A user's program: memory and loops of its own, and of ours the exchange alone.

#include <functional>
#include <utility>

#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"

namespace isohalo {

/// `Row` takes the row in the old array and in the new one. Arrays are as large-paged as those of our fields.
template <int D, class Row>
class Embedded {
 public:
  /// Collective.
  Embedded(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : halo_(domain, StencilShape<D>::star(1), 1),
        memory_{array(domain), array(domain)},
        now_(adopt(memory_[0].ref().data, domain.owned(), 1)),
        next_(adopt(memory_[1].ref().data, domain.owned(), 1)),
        row_(make(now_.stride)) {}

  double& at(const Index<D>& i, std::size_t = 0) { return now_.at(i); }

  void advance(std::int64_t steps) {
    const Box<D> mine = now_.owned;
    for (std::int64_t s = 0; s < steps; ++s) {
      halo_.exchange(now_);
      Index<D> i = mine.low;
      for (i[0] = mine.low[0]; i[0] < mine.high[0]; ++i[0])
        if constexpr (D == 2)
          row_(&now_.at(i), &next_.at(i), mine.extent(1));
        else
          for (i[1] = mine.low[1]; i[1] < mine.high[1]; ++i[1]) row_(&now_.at(i), &next_.at(i), mine.extent(2));
      std::swap(now_, next_);
    }
  }

 private:
  static Field<double, 1> array(const CartesianDomain<D>& domain) {
    return {"embedded", box_of_shape<1>({adopted_size(domain.owned(), 1)}), {}, {}};
  }

  HaloPlan<D> halo_;
  Field<double, 1> memory_[2];
  ArrayRef<double, D> now_, next_;
  Row row_;
};

}  // namespace isohalo
