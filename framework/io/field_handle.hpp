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
  AnyArray<D> array;
  /// The dimension on whose faces the values lie (see faces.hpp): then the array's owned box is `owned_faces`. -1:
  /// in cells.
  int face = -1;
};

}  // namespace isohalo
