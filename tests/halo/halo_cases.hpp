#pragma once
/// The needed ghost cells by brute force, and the shapes and grids that every halo test goes through.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/common/probe_field.hpp"
#include "framework/halo/halo_schedule.hpp"

namespace isohalo::test {

/// The cells outside `block` that `steps` steps read, in unwrapped indices, straight from the definition.
template <int D>
std::set<Index<D>> needed_by_definition(const Box<D>& block, const Offsets<D>& offsets, int steps,
                                        const BoundaryTopology<D>& around) {
  std::set<Index<D>> cells;
  for_each_cell(block, [&](const Index<D>& i) { cells.insert(i); });
  for (int s = 0; s < steps; ++s) {
    std::set<Index<D>> read = cells;
    for (const auto& i : cells)
      for (const auto& o : offsets) {
        Index<D> x;
        bool exists = true;
        for (int j = 0; j < D; ++j) {
          x[j] = i[j] + o[j];
          const std::int64_t n = around.global.high[j];
          if (around.periodic[j]) continue;
          if (x[j] < 0)
            exists = exists && around.mirror_low[j], x[j] = -1 - x[j];
          else if (x[j] >= n)
            exists = exists && around.mirror_high[j], x[j] = 2 * n - 1 - x[j];
          exists = exists && x[j] >= 0 && x[j] < n;
        }
        if (exists) read.insert(x);
      }
    cells = std::move(read);
  }
  for_each_cell(block, [&](const Index<D>& i) { cells.erase(i); });
  return cells;
}

/// From other ranks.
template <int D>
std::int64_t cells_received(const HaloSchedule<D>& schedule) {
  std::int64_t n = 0;
  for (const auto& stage : schedule)
    for (const auto& message : stage.receive)
      for (const auto& r : message.regions) n += r.region.cells();
  return n;
}

using detail::NamedShape;
using detail::shapes;

/// A short list for the costly cases.
template <int D>
std::vector<NamedShape<D>> few_shapes() {
  auto all = shapes<D>();
  all.erase(all.begin() + 1);  // von Neumann 2 stays
  return all;
}

}  // namespace isohalo::test
