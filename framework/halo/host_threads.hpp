#pragma once
/// The threads of Kokkos' host execution space (Kokkos must be initialised): loops in pieces, one piece for each.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdint>

#include "datatypes/box.hpp"
#include "framework/halo/workers.hpp"

namespace isohalo {

/// How many there are. Local.
inline int host_threads() {
  return std::max(1, Kokkos::DefaultHostExecutionSpace().concurrency());
}

/// f(k) for k = 0 .. n-1, from several threads; not from one of such a loop. Fences. Local.
template <class F>
void for_each_piece(const char* label, std::int64_t n, const F& f) {
  if (n == 1) return f(std::int64_t{0});
  using Space = Kokkos::DefaultHostExecutionSpace;
  Kokkos::parallel_for(label, Kokkos::RangePolicy<Space>(0, n), [&f](const std::int64_t k) { f(k); });
  Space().fence();
}

/// f(part, k) for boxes k = 0, 1, .. that make up `box`, cut across its longest dimension: one for each thread, or
/// fewer, so that each has at least so many cells. Fences. Local.
template <int D, class F>
void for_each_share(const char* label, const Box<D>& box, std::int64_t least_cells, const F& f) {
  if (box.empty()) return;
  int cut = 0;
  for (int j = 1; j < D; ++j)
    if (box.extent(j) > box.extent(cut)) cut = j;
  const std::int64_t extent = box.extent(cut), most = std::min(extent, box.cells() / least_cells);
  const std::int64_t parts = std::clamp<std::int64_t>(most, 1, host_threads());
  for_each_piece(label, parts, [&](std::int64_t k) {
    Box<D> part = box;
    part.low[cut] = box.low[cut] + extent * k / parts;
    part.high[cut] = box.low[cut] + extent * (k + 1) / parts;
    f(static_cast<const Box<D>&>(part), k);
  });
}

/// All of them, for the copies of an exchange. Local.
inline Workers host_workers() {
  return {host_threads(), [](int n, void (*piece)(void*, int), void* context) {
            for_each_piece("isohalo::copy", n, [=](std::int64_t k) { piece(context, static_cast<int>(k)); });
          }};
}

}  // namespace isohalo
