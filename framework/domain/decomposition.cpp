#include "framework/domain/decomposition.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

template <int D>
std::int64_t checked_cells(const Index<D>& shape) {
  constexpr std::int64_t limit = std::int64_t{1} << 53;
  std::int64_t n = 1;
  for (int j = 0; j < D; ++j) {
    if (shape[j] < 1)
      throw UsageError("the grid has extent " + std::to_string(shape[j]) + " in dimension " + std::to_string(j) +
                       "; the least is 1");
    if (shape[j] > limit / n)
      throw UsageError("a grid of " + shape_string<D>(shape) + " cells is beyond the limit of 2^53 cells");
    n *= shape[j];
  }
  return n;
}

namespace {

/// Appends every ordered factorisation of `ranks` into dimensions j .. D-1 that fits the shape.
template <int D>
void factorise(const Index<D>& shape, int ranks, int j, PerDim<int, D>& grid, std::vector<PerDim<int, D>>& grids) {
  if (j == D - 1) {
    grid[j] = ranks;
    if (ranks <= shape[j]) grids.push_back(grid);
    return;
  }
  for (int n = 1; n <= std::min<std::int64_t>(ranks, shape[j]); ++n) {
    if (ranks % n) continue;
    grid[j] = n;
    factorise<D>(shape, ranks / n, j + 1, grid, grids);
  }
}

}  // namespace

template <int D>
double step_cost(const Index<D>& shape, const PerDim<int, D>& grid) {
  double cells = 1;
  Index<D> block;
  for (int j = 0; j < D; ++j) {
    block[j] = (shape[j] + grid[j] - 1) / grid[j];
    cells *= static_cast<double>(block[j]);
  }
  double cost = cells;
  for (int j = 0; j < D; ++j)
    if (grid[j] > 1) cost += 2 * cells / static_cast<double>(block[j]) * (D > 1 && j == D - 1 ? 12.0 : 3.0);
  return cost;
}

template <int D>
std::vector<PerDim<int, D>> all_process_grids(const Index<D>& shape, int ranks) {
  std::vector<PerDim<int, D>> grids;
  PerDim<int, D> grid{};
  factorise<D>(shape, ranks, 0, grid, grids);
  return grids;
}

template <int D>
PerDim<int, D> choose_process_grid(const Index<D>& shape, int ranks) {
  checked_cells<D>(shape);
  const auto grids = all_process_grids<D>(shape, ranks);
  const auto cheaper = [&](const auto& a, const auto& b) {
    return step_cost<D>(shape, a) < step_cost<D>(shape, b);
  };
  // Later grids cut the slower dimensions more: they win ties.
  if (!grids.empty()) return *std::min_element(grids.rbegin(), grids.rend(), cheaper);
  const std::int64_t cells = box_of_shape<D>(shape).cells();
  auto fits = static_cast<int>(std::min<std::int64_t>(ranks - 1, cells));
  while (fits > 1 && all_process_grids<D>(shape, fits).empty()) --fits;
  throw UsageError((ranks > cells ? std::to_string(ranks) + " ranks cannot each own a cell of a grid of "
                                  : "no process grid of " + std::to_string(ranks) + " ranks fits into a grid of ") +
                   shape_string<D>(shape) + " cells: run on " + std::to_string(fits) +
                   (fits == 1 ? " rank" : " ranks"));
}

namespace {

/// The cuts of one dimension.
std::vector<std::int64_t> snapped_cuts(std::int64_t n, int blocks, double tolerance) {
  std::vector<std::int64_t> cuts(static_cast<std::size_t>(blocks) + 1);
  cuts.front() = 0;
  cuts.back() = n;
  const double slack = tolerance * static_cast<double>(n) / blocks;
  for (int c = 1; c < blocks; ++c) {
    const double even = static_cast<double>(n) * c / blocks;
    auto cut = static_cast<std::int64_t>(std::floor(even));
    // The multiple of the highest power of two in [even - slack, even + slack], the nearest one if there are two.
    for (int bit = 62; bit >= 0; --bit) {
      const double unit = std::ldexp(1.0, bit);
      const double nearest = std::floor(even / unit + 0.5) * unit;
      if (std::abs(nearest - even) <= slack) {
        cut = static_cast<std::int64_t>(nearest);
        break;
      }
    }
    cut = std::max(cut, cuts[static_cast<std::size_t>(c) - 1] + 1);
    cuts[static_cast<std::size_t>(c)] = std::min(cut, n - (blocks - c));
  }
  return cuts;
}

}  // namespace

template <int D>
Decomposition<D>::Decomposition(const Index<D>& shape, const PerDim<int, D>& grid, double tolerance)
    : global_(box_of_shape<D>(shape)) {
  checked_cells<D>(shape);
  if (!(tolerance >= 0 && tolerance <= 0.5))
    throw UsageError("alignment tolerance " + std::to_string(tolerance) + " is outside 0 .. 0.5");
  for (int j = 0; j < D; ++j) {
    if (grid[j] < 1 || grid[j] > shape[j])
      throw UsageError("process grid: " + std::to_string(grid[j]) + " ranks in dimension " + std::to_string(j) +
                       ", which has " + std::to_string(shape[j]) + " cells; each rank must own a cell");
    cuts_[j] = snapped_cuts(shape[j], grid[j], tolerance);
  }
}

template <int D>
Decomposition<D>::Decomposition(const Index<D>& shape, PerDim<std::vector<std::int64_t>, D> cuts)
    : global_(box_of_shape<D>(shape)), cuts_(std::move(cuts)) {
  checked_cells<D>(shape);
  for (int j = 0; j < D; ++j) {
    bool good = cuts_[j].size() >= 2 && cuts_[j].front() == 0 && cuts_[j].back() == shape[j];
    for (std::size_t c = 1; good && c < cuts_[j].size(); ++c) good = cuts_[j][c] > cuts_[j][c - 1];
    if (!good)
      throw UsageError("cuts of dimension " + std::to_string(j) + " must rise strictly from 0 to " +
                       std::to_string(shape[j]));
  }
}

template <int D>
PerDim<int, D> Decomposition<D>::grid() const {
  PerDim<int, D> g;
  for (int j = 0; j < D; ++j) g[j] = blocks(j);
  return g;
}

template <int D>
int Decomposition<D>::ranks() const {
  int n = 1;
  for (int j = 0; j < D; ++j) n *= blocks(j);
  return n;
}

template <int D>
Box<D> Decomposition<D>::box(const PerDim<int, D>& coords) const {
  Box<D> b;
  for (int j = 0; j < D; ++j) b.low[j] = cut(j, coords[j]), b.high[j] = cut(j, coords[j] + 1);
  return b;
}

template <int D>
PerDim<int, D> Decomposition<D>::coordinates(int rank) const {
  PerDim<int, D> c;
  for (int j = D - 1; j >= 0; --j) c[j] = rank % blocks(j), rank /= blocks(j);
  return c;
}

template <int D>
int Decomposition<D>::rank_at(const PerDim<int, D>& coords) const {
  int r = 0;
  for (int j = 0; j < D; ++j) r = r * blocks(j) + coords[j];
  return r;
}

template <int D>
int Decomposition<D>::owner(int j, std::int64_t x) const {
  return static_cast<int>(std::upper_bound(cuts_[j].begin(), cuts_[j].end(), x) - cuts_[j].begin()) - 1;
}

template <int D>
Index<D> Decomposition<D>::smallest() const {
  Index<D> n = global_.extents();
  for (int j = 0; j < D; ++j)
    for (int c = 0; c < blocks(j); ++c) n[j] = std::min(n[j], cut(j, c + 1) - cut(j, c));
  return n;
}

template <int D>
Index<D> Decomposition<D>::largest() const {
  Index<D> n{};
  for (int j = 0; j < D; ++j)
    for (int c = 0; c < blocks(j); ++c) n[j] = std::max(n[j], cut(j, c + 1) - cut(j, c));
  return n;
}

template <int D>
double Decomposition<D>::imbalance() const {
  double r = 1;
  for (int j = 0; j < D; ++j)
    r *= static_cast<double>(largest_extent(j)) * blocks(j) / static_cast<double>(global_.extent(j));
  return r;
}

#define ISOHALO_INSTANTIATE(D)                                                     \
  template std::int64_t checked_cells<D>(const Index<D>&);                         \
  template PerDim<int, D> choose_process_grid<D>(const Index<D>&, int);            \
  template double step_cost<D>(const Index<D>&, const PerDim<int, D>&);            \
  template std::vector<PerDim<int, D>> all_process_grids<D>(const Index<D>&, int); \
  template class Decomposition<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
