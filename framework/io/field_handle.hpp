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
  std::string role = "state";  ///< "state": needed to restart; "auxiliary": derived
  AnyArray<D> array;
};

}  // namespace isohalo
