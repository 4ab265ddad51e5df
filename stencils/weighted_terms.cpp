#include "stencils/weighted_terms.hpp"

namespace isohalo {

template class WeightedTerms<float>;
template class WeightedTerms<double>;

}  // namespace isohalo
