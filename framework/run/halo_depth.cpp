#include "framework/run/halo_depth.hpp"

#include <algorithm>

namespace isohalo {

namespace {

/// Fields of this size are in no cache of theirs: 32 MiB is what a last-level cache has for a few ranks at most.
constexpr double kBeyondCaches_bytes = 64 << 20;

/// Beyond these a tile's data travels so rarely that arithmetic is all that is left, and ghosts only cost: in 3-D
/// they grow faster.
template <int D>
constexpr int kEnough = D <= 2 ? 16 : 10;

/// Fewer gain less than the ghosts and the shorter rows cost.
constexpr int kFew = 4;

constexpr double kMoreMemory = 1.2;

}  // namespace

template <int D>
int automatic_depth(const SolverModel<D>& model, const Decomposition<D>& blocks, std::int64_t residual_every) {
  if (!model.steps_in_tiles()) return 1;
  Index<D> smallest, largest;
  for (int j = 0; j < D; ++j) smallest[j] = blocks.smallest_extent(j), largest[j] = blocks.largest_extent(j);
  if (model.memory(smallest, 1) <= kBeyondCaches_bytes) return 1;
  int most = std::min(kEnough<D>, model.deepest());
  if (residual_every > 0) most = static_cast<int>(std::min<std::int64_t>(most, residual_every));
  const int depth = largest_depth(model, largest, most, kMoreMemory * model.memory(largest, 1));
  return depth < kFew ? 1 : depth;
}

template <int D>
int largest_depth(const SolverModel<D>& model, const Index<D>& extents, int depth, double bytes) {
  int fits = 0;
  for (int too_many = depth + 1; too_many - fits > 1;) {
    const int k = fits + (too_many - fits) / 2;
    (model.memory(extents, k) <= bytes ? fits : too_many) = k;
  }
  return fits;
}

#define ISOHALO_INSTANTIATE(D)                                                                   \
  template int automatic_depth<D>(const SolverModel<D>&, const Decomposition<D>&, std::int64_t); \
  template int largest_depth<D>(const SolverModel<D>&, const Index<D>&, int, double);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
