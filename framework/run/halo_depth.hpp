#pragma once
/// parallel.halo_depth = "auto": steps per exchange, from the input and the blocks alone.

#include "framework/domain/decomposition.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// Steps per exchange that suit a run: 1 where the fields of a block may stay in caches or the solver makes no use
/// of more; else as many as make time tiles worth while (docs/performance.md), at most the steps between two
/// residuals (0: there are none), fewer where ghosts would take more than a fifth of the memory on top. A pure
/// function, so that all ranks, and a plan without ranks, get the same.
template <int D>
int automatic_depth(const SolverModel<D>& model, const Decomposition<D>& blocks, std::int64_t residual_every);

/// The largest depth up to `depth` whose blocks take at most so many bytes; 0: not even one step does. Local.
template <int D>
int largest_depth(const SolverModel<D>& model, const Index<D>& extents, int depth, double bytes);

}  // namespace isohalo
