#include "framework/reduce/tree_reducer.hpp"

namespace isohalo {

#define ISOHALO_INSTANTIATE(D)                        \
  template class detail::TileReducer<double, D, Sum>; \
  template class detail::Reduction<double, D, Sum>;   \
  template class TreeReducer<double, D, Sum>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
