#pragma once
/// Coefficients that depend on the time.

#include <functional>
#include <vector>

#include "framework/halo/array_ref.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

/// Gives the values of the n cells from `first` on along the last dimension at a time; several threads call it.
template <int D>
using ValuesInTime = std::function<void(const Index<D>& first, std::int64_t n, double time, double* values)>;

/// The values of this time in `cells`, a SweepRegion or a box, each rounded to T. Fences. Local.
template <class T, int D, class Cells>
void give_values(const ArrayRef<T, D>& u, const Cells& cells, const ValuesInTime<D>& values, double time) {
  for_each_row_of("isohalo::source", cells, [&](const Index<D>& i, std::int64_t n) {
    static thread_local std::vector<double> exact;
    exact.resize(static_cast<std::size_t>(n));
    values(i, n, time, exact.data());
    T* const row = &u.at(i);
    for (std::int64_t x = 0; x < n; ++x) row[x] = static_cast<T>(exact[static_cast<std::size_t>(x)]);
  });
}

}  // namespace isohalo
