#pragma once
/// The stepper of one field and of a row kernel of it.

#include <string>

#include "stencils/state_stepper.hpp"

namespace isohalo {

/// The stepper of one field and of a row kernel of it.
template <class T, int D, class Row>
class DeepStepper : public StateStepper<T, D> {
 public:
  /// `make_row(stride)` builds the kernel; the rest as above. Collective in order.
  template <class MakeRow>
  DeepStepper(const std::string& name, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
              const BoundaryRules<D>& rules, int depth, MakeRow&& make_row, Exchange exchange = Exchange::automatic,
              Overlap overlap = Overlap::automatic)
      : StateStepper<T, D>(
            StateFields{{name}}, domain, shape, {rules}, depth,
            [&](const Index<D>& stride) {
              typename StateStepper<T, D>::Kernels one;
              one.push_back(step_kernel<T, D>(Row(make_row(stride))));
              return one;
            },
            exchange, overlap) {}
};

}  // namespace isohalo
