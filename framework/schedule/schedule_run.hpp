#pragma once
/// A schedule run in process, on the values of all ranks at once.

#include <cstddef>
#include <utility>
#include <vector>

#include "framework/schedule/schedule.hpp"

namespace isohalo {

/// Runs all stages on values[0 .. ranks-1]; each is replaced by its rank's result. `op` takes two values and
/// returns their combination; it is called in the order that StageActions promises.
template <class T, class Op>
void run_in_process(const Schedule& schedule, std::vector<T>& values, Op&& op) {
  std::vector<T> next(values);
  StageActions a;
  for (int s = 0; s < schedule.size(); ++s, values.swap(next))
    for (int r = 0; r < schedule.ranks(); ++r) {
      schedule.actions(s, r, a);
      T& result = next[static_cast<std::size_t>(r)];
      bool first = true;
      const auto take = [&](int rank) {
        const T& v = values[static_cast<std::size_t>(rank)];
        result = first ? v : op(std::as_const(result), v);
        first = false;
      };
      for (std::size_t i = 0; i <= a.receive.size(); ++i) {
        if (i == a.own && !(a.replace && !a.receive.empty())) take(r);
        if (i < a.receive.size()) take(a.receive[i]);
      }
    }
}

}  // namespace isohalo
