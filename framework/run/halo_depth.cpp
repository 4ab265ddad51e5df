#include "framework/run/halo_depth.hpp"

#include <algorithm>

namespace isohalo {

namespace {

/// Fields of this size are in no cache of theirs: 32 MiB is what a last-level cache has for a few ranks at most.
constexpr double kBeyondCaches_bytes = 64 << 20;

/// What is tried out where a block is in caches: an exchange costs as much as a few thousand updates there. In 3-D
/// more than four cost too much to be worth a trial.
constexpr int kTried[] = {1, 2, 4, 8};
template <int D>
constexpr int kMostTried = D <= 2 ? 8 : 4;

/// Beyond these a tile's data travels so rarely that arithmetic is all that is left, and ghosts only cost: in 3-D
/// they grow faster.
template <int D>
constexpr int kEnough = D <= 2 ? 16 : 8;

/// Fewer gain less than the ghosts and the shorter rows cost.
constexpr int kFew = 4;

/// What a tile in a second-level cache of half a MiB brings in around itself grows with the dimensions and the
/// reach: in 3-D from a reach of 2 on, and in 4-D, it is more than a sweep does (a star of radius 4 on 320^3 cells
/// in tiles of 4 steps: 0.72 of the speed of a sweep a step on a Zen 3).
template <int D>
bool tiles_pay(const StencilShape<D>& shape) {
  return D <= 2 || (D == 3 && shape.radius() <= 1);
}

constexpr double kMoreMemory = 1.25, kMoreMemoryInCaches = 2;

}  // namespace

template <int D>
std::vector<int> automatic_depths(const SolverModel<D>& model, const Decomposition<D>& blocks,
                                  std::int64_t residual_every) {
  if (!model.steps_in_tiles()) return {1};
  Index<D> smallest, largest;
  for (int j = 0; j < D; ++j) smallest[j] = blocks.smallest_extent(j), largest[j] = blocks.largest_extent(j);
  const bool in_caches = model.memory(smallest, 1) <= kBeyondCaches_bytes;
  if (in_caches && !model.tries_depths()) return {1};
  const double bytes = (in_caches ? kMoreMemoryInCaches : kMoreMemory) * model.memory(largest, 1);
  int most = largest_depth([&](int depth) { return model.memory(largest, depth); },
                           std::min(in_caches ? kMostTried<D> : kEnough<D>, model.deepest()), bytes);
  if (!in_caches) {
    if (!tiles_pay(model.shape())) return {1};
    if (most > 0 && residual_every > 0) {  // blocks of equal lengths between two residuals
      const std::int64_t parts = (residual_every + most - 1) / most;
      most = static_cast<int>((residual_every + parts - 1) / parts);
    }
    if (most < kFew) return {1};
    if (D == 3 && model.shape().offsets().size() > 7) return {1, most};  // arithmetic may be the limit of both
    return {most};
  }
  if (residual_every > 0) most = static_cast<int>(std::min<std::int64_t>(most, residual_every));
  std::vector<int> depths;
  for (const int depth : kTried)
    if (depth == 1 || depth <= most) depths.push_back(depth);
  return depths;
}

int largest_depth(const std::function<double(int depth)>& memory, int depth, double bytes) {
  int fits = 0;
  for (int too_many = depth + 1; too_many - fits > 1;) {
    const int k = fits + (too_many - fits) / 2;
    (memory(k) <= bytes ? fits : too_many) = k;
  }
  return fits;
}

#define ISOHALO_INSTANTIATE(D) \
  template std::vector<int> automatic_depths<D>(const SolverModel<D>&, const Decomposition<D>&, std::int64_t);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
