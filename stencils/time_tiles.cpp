#include "stencils/time_tiles.hpp"

#include <cmath>
#include <utility>

#include "datatypes/cache_size.hpp"

namespace isohalo {

namespace {

/// Extents of about `cells` cells, as many in each dimension but the last, where they are given. `reach` more of
/// them on both sides of a tile are in the cache as well.
template <int D>
Index<D> spread(const Index<D>& block, const Index<D>& reach, double cells, std::int64_t last) {
  Index<D> w{};
  w[D - 1] = last;
  double left = cells / static_cast<double>(last);
  PerDim<bool, D> done{};
  for (int round = 0; round < D - 1; ++round) {  // the smallest first: it may be taken whole
    int j = -1;
    for (int i = 0; i < D - 1; ++i)
      if (!done[i] && (j < 0 || block[i] < block[j])) j = i;
    const double each = std::pow(left, 1.0 / (D - 1 - round)) - 2 * static_cast<double>(reach[j]);
    w[j] = std::clamp<std::int64_t>(static_cast<std::int64_t>(each), 1, block[j]);
    left = std::max(1.0, left / static_cast<double>(w[j] + (w[j] < block[j] ? 2 * reach[j] : 0)));
    done[j] = true;
  }
  return w;
}

/// Makes w[D-2] the nearest multiple of so many rows, and of three dimensions and more w[0] the less for it; not
/// where a tile of two would become more than twice as large, or w[0] has not so much to give.
template <int D>
void take_rows(Index<D>& w, const Index<D>& block, std::int64_t rows) {
  const std::int64_t wanted = w[D - 2], most = D > 2 ? w[0] * wanted : 2 * wanted;
  if (wanted >= block[D - 2] || rows > most) return;
  w[D - 2] = std::min(block[D - 2], std::max<std::int64_t>(1, (wanted + rows / 2) / rows) * rows);
  if (D > 2) w[0] = std::clamp<std::int64_t>(w[0] * wanted / w[D - 2], 1, block[0]);
}

}  // namespace

template <int D>
TimeTiles<D> TimeTiles<D>::chosen(const Index<D>& block, const Index<D>& reach, std::int64_t cell_bytes,
                                  std::int64_t line, int steps, std::int64_t cache, int rows) {
  constexpr double row_cost = 32;  // what begins and ends a row takes as long as so many cells
  const double cells = std::max(1.0, static_cast<double>(cache) / static_cast<double>(cell_bytes));
  TimeTiles best = skewed(reach, line);
  double least = 0;
  const auto weigh = [&](std::int64_t row) {
    Index<D> w = spread<D>(block, reach, cells, row);
    if constexpr (D > 1) take_rows<D>(w, block, rows);
    double cost = 1 + row_cost / static_cast<double>(row);
    for (int j = 0; j < D; ++j)
      if (w[j] < block[j]) cost *= 1 + static_cast<double>(steps * best.skew[j]) / static_cast<double>(w[j]);
    if (least == 0 || cost < least) least = cost, best.extents = w;
  };
  weigh(block[D - 1]);
  for (std::int64_t row = 16 * line; row < block[D - 1] && static_cast<double>(row) <= cells;
       row += row / 2 / line * line)
    weigh(row);
  best.keep_whole(block, reach, steps);
  return best;
}

template <int D>
TimeTiles<D> TimeTiles<D>::thin(const Index<D>& block, const Index<D>& reach, std::int64_t cell_bytes,
                                std::int64_t line, int steps, std::int64_t cache, int threads, int rows) {
  if constexpr (D == 1) {
    return chosen(block, reach, cell_bytes, line, steps, cache * threads, rows);
  } else {
    const auto multiple = [rows](std::int64_t n) { return (n + rows - 1) / rows * rows; };
    constexpr std::int64_t piece = 8192, of_two = 8;  // bytes of a row, and rows, of two dimensions
    TimeTiles t = skewed(reach, line);
    t.extents = block;
    if constexpr (D == 2) {
      t.extents = {std::min(block[0], multiple(std::max(of_two, 4 * reach[0])) * threads),
                   std::min(block[1], std::max(line, piece / cell_bytes / line * line))};
    } else {
      t.extents[D - 2] = std::min(block[D - 2], multiple(std::max<std::int64_t>(1, 2 * reach[D - 2])) * threads);
      const double planes = static_cast<double>(cache * threads) / static_cast<double>(cell_bytes) /
                            static_cast<double>(t.extents[D - 2] * block[D - 1]);
      const auto each = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::pow(planes, 1.0 / (D - 2))));
      for (int j = 0; j < D - 2; ++j) t.extents[j] = std::min(block[j], std::max(each, 4 * reach[j]));
    }
    t.keep_whole(block, reach, steps);
    return t;
  }
}

template <int D>
TileSizes<D> TileSizes<D>::of(const Index<D>& block, const Index<D>& reach, std::int64_t cell_bytes,
                              std::int64_t line, int steps, int threads, int rows,
                              const std::optional<Index<D>>& forced) {
  const auto filling = [&](std::int64_t cache) {
    return TimeTiles<D>::chosen(block, reach, cell_bytes, line, steps, cache * threads,
                                rows > 1 ? rows * threads : 1);
  };
  std::vector<TimeTiles<D>> sizes;
  for (const std::int64_t part : {1, 4}) sizes.push_back(filling(second_level_cache() / part));
  for (const std::int64_t part : {16, 3})
    sizes.push_back(
        TimeTiles<D>::thin(block, reach, cell_bytes, line, steps, second_level_cache() / part, threads, rows));
  sizes.back().fetched = true;
  if (forced) {
    sizes.resize(1);
    sizes[0].extents = *forced;
    sizes[0].keep_whole(block, reach, steps);
  }
  return {std::move(sizes)};
}

#define ISOHALO_INSTANTIATE(D)  \
  template struct TimeTiles<D>; \
  template struct TileSizes<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
