#pragma once
/// Arrays on the faces between cells, exchanged in one plan with arrays in cells.
///
/// Face i of dimension j lies between cells i - 1 and i: there are N_j + 1 of them, or N_j where the dimension is
/// periodic (face N_j is face 0). The owner of cell min(i, N_j - 1) owns face i, so a rank's faces have the indices
/// of its cells, and one more at the upper side of a dimension that is not periodic.

#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"

namespace isohalo {

/// Who owns which faces of dimension `face`: the cells' blocks, the last one a layer longer where the dimension is
/// not periodic. Local. Throws UsageError when there is no such dimension, or for more than 2^53 faces.
template <int D>
Decomposition<D> face_decomposition(const Decomposition<D>& cells, const PerDim<bool, D>& periodic, int face);

/// The faces of dimension `face` that this rank owns: the box for `adopt`. Local; throws as face_decomposition.
template <int D>
Box<D> owned_faces(const CartesianDomain<D>& domain, int face) {
  return face_decomposition(domain.decomposition(), domain.periodic(), face).box(domain.coordinates());
}

/// The domain of a field on the faces of dimension `face`, which owns faces as the given one owns cells; of -1 that
/// domain itself. Its boxes, indices and reduction trees are those of the faces. Local; throws as
/// face_decomposition.
template <int D>
CartesianDomain<D> field_domain(const CartesianDomain<D>& domain, int face) {
  if (face < 0) return domain;
  return {domain, face_decomposition(domain.decomposition(), domain.periodic(), face)};
}

/// The same array (ArrayRef or ErasedArray), as one on the faces of dimension `face` in an exchange. Its
/// box must be `owned_faces`; its ghost layers are as many as a cell's array needs. Local.
template <class Array>
auto on_faces(const Array& array, int face) {
  auto erased = erase(array);
  erased.face = face;
  return erased;
}

}  // namespace isohalo
