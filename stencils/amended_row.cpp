#include "stencils/amended_row.hpp"

namespace isohalo::detail {

#define ISOHALO_INSTANTIATE(T, D)     \
  template class AmendedRow<T, D, 1>; \
  template class AmendedRow<T, D, 2>;
ISOHALO_FOR_EACH_FLOAT_FIELD(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
