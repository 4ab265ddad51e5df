#pragma once
/// The stepper of one field and of a row kernel of it.

#include <string>
#include <type_traits>

#include "stencils/state_stepper.hpp"

namespace isohalo {

/// The stepper of one field and of a row kernel of it.
template <class T, int D, class Row>
class DeepStepper : public StateStepper<T, D> {
 public:
  /// `make_row(stride)` builds the kernel, or an array of kernels that take turns; the rest as above. Collective in
  /// order.
  template <class MakeRow>
  DeepStepper(const std::string& name, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
              const BoundaryRules<D>& rules, int depth, MakeRow&& make_row, Exchange exchange = Exchange::automatic,
              Overlap overlap = Overlap::automatic)
      : StateStepper<T, D>(
            StateFields{{name}}, domain, shape, {rules}, depth,
            [&](const Index<D>& stride) {
              typename StateStepper<T, D>::Kernels kernels;
              const auto made = make_row(stride);
              if constexpr (std::is_convertible_v<decltype(made), Row>)
                kernels.push_back(step_kernel<T, D>(Row(made)));
              else
                for (const Row& row : made) kernels.push_back(step_kernel<T, D>(row));
              return kernels;
            },
            exchange, overlap) {}
};

}  // namespace isohalo
