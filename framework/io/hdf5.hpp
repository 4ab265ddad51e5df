#pragma once
/// Owning HDF5 handles, checked calls, and attributes of the few types that the schema uses.

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace isohalo {

/// A move-only HDF5 handle of any kind, closed with its owner; closing never throws.
class H5Handle {
 public:
  H5Handle() = default;
  explicit H5Handle(hid_t id) : id_(id) {}
  H5Handle(H5Handle&& o) noexcept : id_(o.id_) { o.id_ = -1; }
  H5Handle& operator=(H5Handle&& o) noexcept {
    std::swap(id_, o.id_);
    return *this;
  }
  H5Handle(const H5Handle&) = delete;
  H5Handle& operator=(const H5Handle&) = delete;
  ~H5Handle() { close(); }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  void close() noexcept;
  /// Gives the handle away without closing it.
  hid_t release() noexcept {
    const hid_t id = id_;
    id_ = -1;
    return id;
  }

 private:
  hid_t id_ = -1;
};

/// Throws RunError with HDF5's innermost message when `result` is negative. `place` names what was tried.
hid_t h5_check(hid_t result, const std::string& place);
/// The same for a new handle.
H5Handle h5_own(hid_t result, const std::string& place);

/// The names in a group, sorted. Throws as h5_check does.
std::vector<std::string> h5_names(hid_t group, const std::string& place);
/// The names of an object's attributes, sorted.
std::vector<std::string> h5_attributes(hid_t object, const std::string& place);

/// Open a group or dataset of a file that others may have made. Throw UsageError, naming the object and the other
/// file, where something else than this file would be read: a link to another file, wherever on the path, data in
/// external files, a virtual dataset. A negative handle when there is no such object. Local.
H5Handle open_group(hid_t where, const std::string& path);
H5Handle open_dataset(hid_t where, const std::string& path);

/// Keeps HDF5 from loading filters from files of its plugin path while it lives; those built in work.
class H5NoPlugins {
 public:
  H5NoPlugins();
  ~H5NoPlugins();
  H5NoPlugins(const H5NoPlugins&) = delete;
  H5NoPlugins& operator=(const H5NoPlugins&) = delete;

 private:
  unsigned before_ = 0;
};

/// Keeps HDF5 from printing its error stack while it lives; we print our own one-line errors.
class H5Quiet {
 public:
  H5Quiet();
  ~H5Quiet();
  H5Quiet(const H5Quiet&) = delete;
  H5Quiet& operator=(const H5Quiet&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// The same for the rest of the process, for programs: HDF5 leaves objects of damaged files open and complains of
/// them when the process ends, unless it is silent then.
void h5_be_quiet();

H5Handle property_list(hid_t kind, const char* place);
/// A contiguous dataset without fill values, times or filters: its bytes are the data's, and nothing else.
H5Handle make_dataset(hid_t where, const std::string& name, hid_t type, const H5Handle& space);

void write_attribute(hid_t object, const std::string& name, std::span<const std::int64_t> values);
void write_attribute(hid_t object, const std::string& name, std::span<const double> values);
void write_attribute(hid_t object, const std::string& name, std::int64_t value);
void write_attribute(hid_t object, const std::string& name, double value);
void write_attribute(hid_t object, const std::string& name, const std::string& text);

/// Reading: throw UsageError naming object and attribute when it is absent or of another type.
std::vector<std::int64_t> read_integers(hid_t object, const std::string& name);
std::vector<double> read_numbers(hid_t object, const std::string& name);
std::int64_t read_integer(hid_t object, const std::string& name);
double read_number(hid_t object, const std::string& name);
std::string read_text(hid_t object, const std::string& name);

}  // namespace isohalo
