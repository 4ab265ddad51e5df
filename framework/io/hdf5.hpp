#pragma once
/// Owning HDF5 handles, checked calls, and what the schema stores: numbers, attributes and contiguous datasets.

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace isohalo {

/// The HDF5 types of the numbers of the schema, and the names that fields' types have in it.
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
template <>
struct StoredType<std::int64_t> {
  static hid_t file() { return H5T_STD_I64LE; }
  static hid_t memory() { return H5T_NATIVE_INT64; }
};

/// Calls `f` with a value of the type that fields of that name have; false for a name that is none.
template <class F>
bool with_stored_type(const std::string& name, F&& f) {
  const auto call = [&](auto value) {
    if (name != StoredType<decltype(value)>::name) return false;
    f(value);
    return true;
  };
  return call(double{}) || call(float{}) || call(std::uint8_t{});
}

/// A move-only HDF5 handle of any kind, closed with its owner; closing never throws.
class H5Handle {
 public:
  H5Handle() = default;
  explicit H5Handle(hid_t id) : id_(id) {}
  H5Handle(H5Handle&& o) noexcept : id_(o.release()) {}
  H5Handle& operator=(H5Handle&& o) noexcept {
    std::swap(id_, o.id_);
    return *this;
  }
  ~H5Handle() { close(); }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  void close() noexcept;
  /// Gives the handle away without closing it.
  hid_t release() noexcept { return std::exchange(id_, -1); }

 private:
  hid_t id_ = -1;
};

/// Throws RunError with HDF5's innermost message when `result` is negative. `place` names what was tried.
hid_t h5_check(hid_t result, const std::string& place);
/// The same for a new handle.
H5Handle h5_own(hid_t result, const std::string& place);

/// The names in a group, and of an object's attributes, sorted. Throw as h5_check does.
std::vector<std::string> h5_names(hid_t group, const std::string& place);
std::vector<std::string> h5_attributes(hid_t object, const std::string& place);

/// Opens a group or dataset (`kind`: H5I_GROUP, H5I_DATASET) of a file that others may have made. Throws
/// UsageError, naming the object, when there is none, and where something else than this file would be read: a link
/// to another file, wherever on the path, data in external files, a virtual dataset. Local.
H5Handle open_object(hid_t where, const std::string& path, H5I_type_t kind);

/// While it lives HDF5 neither prints its error stack (we print our own one-line errors) nor loads filters from
/// files of its plugin path; those built in work.
class H5Quiet {
 public:
  H5Quiet();
  ~H5Quiet();
  H5Quiet(const H5Quiet&) = delete;
  H5Quiet& operator=(const H5Quiet&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
  unsigned plugins_ = 0;
};

/// No error stacks for the rest of the process, for programs: HDF5 leaves objects of damaged files open and
/// complains of them when the process ends, unless it is silent then.
void h5_be_quiet();

/// A contiguous dataset without fill values, times or filters: its bytes are the data's, and nothing else.
H5Handle make_dataset(hid_t where, const std::string& name, hid_t type, const H5Handle& space);

/// T: std::int64_t, double, a std::vector of one of them, or std::string.
template <class T>
void write_attribute(hid_t object, const std::string& name, const T& value);
/// Throws UsageError naming the attribute when it is absent or of another type.
template <class T>
T read_attribute(hid_t object, const std::string& name);

}  // namespace isohalo
