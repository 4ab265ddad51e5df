#include "framework/reduce/tiles.hpp"

#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

template <int D>
Tiling<D>::Tiling(const Decomposition<D>& decomposition, const Index<D>& tile)
    : decomposition_(decomposition), tile_(tile) {
  for (int j = 0; j < D; ++j)
    if (tile[j] < 1 || tile[j] > (1 << 20) || (tile[j] & (tile[j] - 1)))
      throw UsageError("reduction tile: extent " + std::to_string(tile[j]) + " is no power of two up to 2^20");
}

template <int D>
Box<D> Tiling<D>::all() const {
  return touching(decomposition_.global());
}

template <int D>
Box<D> Tiling<D>::cells_of(const Box<D>& tiles) const {
  Box<D> b;
  for (int j = 0; j < D; ++j) {
    b.low[j] = tiles.low[j] * tile_[j];
    b.high[j] = std::min(tiles.high[j] * tile_[j], decomposition_.global().high[j]);
  }
  return b;
}

template <int D>
Index<D> Tiling<D>::first_tile_from(const Index<D>& cell) const {
  Index<D> t;
  for (int j = 0; j < D; ++j) t[j] = (cell[j] + tile_[j] - 1) / tile_[j];
  return t;
}

template <int D>
Box<D> Tiling<D>::owned_by(const PerDim<int, D>& coords) const {
  const Box<D> block = decomposition_.box(coords);
  return {first_tile_from(block.low), first_tile_from(block.high)};
}

template <int D>
Box<D> Tiling<D>::touching(const Box<D>& cells) const {
  Box<D> b{cells.low, first_tile_from(cells.high)};
  for (int j = 0; j < D; ++j) b.low[j] /= tile_[j];
  return b;
}

template <int D>
PerDim<int, D> Tiling<D>::owner(const Index<D>& t) const {
  PerDim<int, D> c;
  for (int j = 0; j < D; ++j) c[j] = decomposition_.owner(j, t[j] * tile_[j]);
  return c;
}

template <int D>
bool Tiling<D>::is_cut(const Index<D>& t) const {
  return !decomposition_.box(owner(t)).contains(cells_of(Box<D>::of_cell(t)));
}

#define ISOHALO_INSTANTIATE(D) template class Tiling<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
