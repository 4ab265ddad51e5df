#include "framework/halo/faces.hpp"

#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

template <int D>
Decomposition<D> face_decomposition(const Decomposition<D>& cells, const PerDim<bool, D>& periodic, int face) {
  if (face < 0 || face >= D)
    throw UsageError("faces of dimension " + std::to_string(face) + ": there are dimensions 0 to " +
                     std::to_string(D - 1));
  PerDim<std::vector<std::int64_t>, D> cuts;
  for (int j = 0; j < D; ++j)
    for (int c = 0; c <= cells.blocks(j); ++c) cuts[j].push_back(cells.cut(j, c));
  if (!periodic[face]) ++cuts[face].back();
  Index<D> shape;
  for (int j = 0; j < D; ++j) shape[j] = cuts[j].back();
  return {shape, std::move(cuts)};
}

#define ISOHALO_INSTANTIATE(D) \
  template Decomposition<D> face_decomposition<D>(const Decomposition<D>&, const PerDim<bool, D>&, int);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
