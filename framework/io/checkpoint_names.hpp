#pragma once
/// HDF5 types and names of the checkpoint schema, shared by writer and reader.

#include <hdf5.h>

#include <cstdint>

namespace isohalo {

template <class T>
struct StoredType;
template <>
struct StoredType<double> {
  static constexpr const char* name = "float64";
  static hid_t file() { return H5T_IEEE_F64LE; }
  static hid_t memory() { return H5T_NATIVE_DOUBLE; }
};
template <>
struct StoredType<float> {
  static constexpr const char* name = "float32";
  static hid_t file() { return H5T_IEEE_F32LE; }
  static hid_t memory() { return H5T_NATIVE_FLOAT; }
};
template <>
struct StoredType<std::uint8_t> {
  static constexpr const char* name = "uint8";
  static hid_t file() { return H5T_STD_U8LE; }
  static hid_t memory() { return H5T_NATIVE_UINT8; }
};

}  // namespace isohalo
