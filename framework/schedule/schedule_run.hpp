#pragma once
/// A schedule run in process, on the values of all ranks at once.

#include <cstddef>
#include <utility>
#include <vector>

#include "framework/schedule/schedule.hpp"

namespace isohalo {

/// Runs one stage: values[r] is what rank r holds, before and after. `op` takes two values and returns their
/// combination; it is called in the order that StageActions promises. `next` is workspace of the same size.
template <class T, class Op>
void run_stage(const Schedule& schedule, int stage, std::vector<T>& values, std::vector<T>& next, Op&& op) {
  StageActions a;
  for (int r = 0; r < schedule.ranks(); ++r) {
    schedule.actions(stage, r, a);
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
  values.swap(next);
}

/// Runs all stages on values[0 .. ranks-1]; each is replaced by its rank's result.
template <class T, class Op>
void run_in_process(const Schedule& schedule, std::vector<T>& values, Op&& op) {
  std::vector<T> next(values);
  for (int s = 0; s < schedule.size(); ++s) run_stage(schedule, s, values, next, op);
}

}  // namespace isohalo
