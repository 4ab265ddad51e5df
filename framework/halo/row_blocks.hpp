#pragma once
/// The order in which sweeps go through the rows of a box: of three dimensions and more in blocks of rows, in which
/// the planes around a cell are still in the second-level cache when their turn comes.

#include <algorithm>
#include <cstdint>

#include "datatypes/box.hpp"
#include "datatypes/cache_size.hpp"

namespace isohalo {

namespace detail {

/// Rows of one piece of work.
inline constexpr std::int64_t kRowsOfPiece = 16;

/// So many rows in dimension D-2 that half of the cache holds `planes` neighbors of each of their cells in
/// dimension 0, and what lies between them; `cell_bytes`: of a cell in all arrays that are read around it. All rows
/// of fewer than three dimensions. Local.
template <int D>
std::int64_t rows_of_block(const Index<D>& extents, std::int64_t planes, std::int64_t cell_bytes) {
  if constexpr (D < 3) {
    return extents[0];
  } else {
    std::int64_t bytes = planes * cell_bytes * extents[D - 1];
    for (int j = 1; j < D - 2; ++j) bytes *= extents[j];
    const std::int64_t fit = second_level_cache() / 2 / std::max<std::int64_t>(1, bytes);
    return std::max(kRowsOfPiece, fit / kRowsOfPiece * kRowsOfPiece);
  }
}

/// f(block) for boxes of at most so many rows in dimension D-2, in order. Local.
template <int D, class F>
void for_each_block(const Box<D>& box, std::int64_t rows, const F& f) {
  if constexpr (D < 3) {
    if (!box.empty()) f(box);
  } else {
    if (box.empty()) return;
    Box<D> block = box;
    for (; block.low[D - 2] < box.high[D - 2]; block.low[D - 2] += rows) {
      block.high[D - 2] = std::min(block.low[D - 2] + rows, box.high[D - 2]);
      f(static_cast<const Box<D>&>(block));
    }
  }
}

/// The row that comes `ahead` rows after the one at cell i in index order of the block; i itself if there is none.
template <int D>
Index<D> row_later(const Box<D>& block, const Index<D>& i, std::int64_t ahead) {
  if constexpr (D < 2) {
    return i;
  } else {
    Index<D> later = behind<D>(i, 0);
    for (later[D - 2] += ahead; later[D - 2] >= block.high[D - 2];) {
      later[D - 2] -= block.extent(D - 2);
      int j = D - 3;
      for (; j >= 0; --j) {
        if (++later[j] < block.high[j]) break;
        later[j] = block.low[j];
      }
      if (j < 0) return i;
    }
    return later;
  }
}

}  // namespace detail

}  // namespace isohalo
