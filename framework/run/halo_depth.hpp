#pragma once
/// parallel.halo_depth = "auto": steps per exchange, from the input and the blocks alone.

#include <functional>
#include <vector>

#include "framework/domain/decomposition.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// Steps per exchange that may suit a run, fewest first: where the fields of a block may stay in caches a few small
/// ones, of which the first steps show the fastest; else one, as many as make time tiles worth while
/// (docs/performance.md), and where arithmetic may be the limit of both 1 before it. At most the steps between two
/// residuals (0: there are none); 1 where the solver makes no use of more; fewer where ghosts would take too much
/// memory on top, or where blocks between residuals get equal lengths. A pure function, so that all ranks, and a
/// plan without ranks, get the same.
template <int D>
std::vector<int> automatic_depths(const SolverModel<D>& model, const Decomposition<D>& blocks,
                                  std::int64_t residual_every);

/// The largest depth up to `depth` for which blocks take at most so many bytes, memory(depth) each; 0: not even one
/// step does. Local.
int largest_depth(const std::function<double(int depth)>& memory, int depth, double bytes);

}  // namespace isohalo
