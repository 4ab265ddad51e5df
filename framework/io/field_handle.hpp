#pragma once
/// A named field of any shipped type, as files, pictures and digests see it.

#include <cstdint>
#include <string>
#include <variant>

#include "framework/halo/array_ref.hpp"

namespace isohalo {

template <int D>
using AnyArray = std::variant<ArrayRef<double, D>, ArrayRef<float, D>, ArrayRef<std::uint8_t, D>>;

template <int D>
struct FieldHandle {
  std::string name;
  std::string units = "1";
  /// "state": the solution; "auxiliary": what the method carries along to continue. Both are restored.
  std::string role = "state";
  AnyArray<D> array;  ///< its rows are without gaps: stride[D-1] is 1
  /// The dimension on whose faces the values lie (see faces.hpp): then the array's owned box is `owned_faces`. -1:
  /// in cells.
  int face = -1;
};

/// Throws UsageError unless the cells of a row lie one after the other: files and digests take whole rows. Local.
template <class T, int D>
void check_rows(const ArrayRef<T, D>& a) {
  if (a.stride[D - 1] != 1)
    throw UsageError("a field has strides " + to_string<D>(a.stride) + ": the last one must be 1");
}

}  // namespace isohalo
