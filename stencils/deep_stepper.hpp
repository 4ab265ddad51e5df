#pragma once
/// StateStepper for solvers of one field.

#include <iterator>
#include <string>

#include "stencils/state_stepper.hpp"

namespace isohalo {

/// The stepper of one field and of a row kernel of it.
template <class T, int D>
class DeepStepper : public StateStepper<T, D> {
 public:
  /// `make_row(stride)` builds the kernel, or an array of kernels that take turns; the rest as in StateStepper.
  /// Collective in order.
  template <class MakeRow>
  DeepStepper(const std::string& name, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
              const BoundaryRules<D>& rules, int depth, MakeRow&& make_row, Exchange exchange = Exchange::automatic)
      : StateStepper<T, D>(
            StateFields{{name}}, domain, shape, {rules}, depth,
            [&](const Index<D>& stride) {
              typename StateStepper<T, D>::Kernels kernels;
              const auto made = make_row(stride);
              if constexpr (requires { std::begin(made); })
                for (const auto& row : made) kernels.push_back(row_kernel<T, D>(row));
              else
                kernels.push_back(row_kernel<T, D>(made));
              return kernels;
            },
            exchange) {}
};

}  // namespace isohalo
