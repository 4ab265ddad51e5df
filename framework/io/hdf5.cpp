#include "framework/io/hdf5.hpp"

#include <algorithm>

#include "datatypes/error.hpp"

namespace isohalo {

void H5Handle::close() noexcept {
  if (id_ < 0) return;
  const hid_t id = id_;
  id_ = -1;
  switch (H5Iget_type(id)) {
    case H5I_FILE:
      H5Fclose(id);
      break;
    case H5I_GROUP:
      H5Gclose(id);
      break;
    case H5I_DATASET:
      H5Dclose(id);
      break;
    case H5I_DATASPACE:
      H5Sclose(id);
      break;
    case H5I_DATATYPE:
      H5Tclose(id);
      break;
    case H5I_ATTR:
      H5Aclose(id);
      break;
    default:
      H5Pclose(id);
      break;
  }
}

namespace {

herr_t keep_innermost(unsigned, const H5E_error2_t* e, void* out) {
  if (e->desc) *static_cast<std::string*>(out) = e->desc;
  return 0;
}

}  // namespace

hid_t h5_check(hid_t result, const std::string& place) {
  if (result >= 0) return result;
  std::string why;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &why);
  H5Eclear2(H5E_DEFAULT);
  std::replace(why.begin(), why.end(), '\n', ' ');  // MPI's reasons have several lines
  throw RunError(place + ": HDF5 says: " + (why.empty() ? "unknown error" : why));
}

H5Handle h5_own(hid_t result, const std::string& place) {
  return H5Handle(h5_check(result, place));
}

std::vector<std::string> h5_names(hid_t group, const std::string& place) {
  std::vector<std::string> names;
  const auto append = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  // In native order: for any other one HDF5 1.10.8 makes a table, and frees addresses that it never set when a
  // group of more than 8 objects is damaged.
  h5_check(H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, append, &names), place);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> h5_attributes(hid_t object, const std::string& place) {
  std::vector<std::string> names;
  const auto append = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  h5_check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, append, &names), place);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

struct Elsewhere {
  bool found = false;
  std::string file;
};

herr_t refuse_other_file(const char*, const char*, const char* file, const char*, unsigned*, hid_t, void* out) {
  *static_cast<Elsewhere*>(out) = {true, file ? file : ""};
  return -1;
}

/// Opens by `open(access)`, where no link to another file is followed.
template <class Open>
H5Handle open_within(hid_t access_class, const std::string& what, const Open& open) {
  Elsewhere elsewhere;
  const H5Handle access = property_list(access_class, "access");
  h5_check(H5Pset_elink_cb(access.get(), refuse_other_file, &elsewhere), "links to other files");
  const hid_t id = open(access.get());
  if (id < 0) H5Eclear2(H5E_DEFAULT);
  H5Handle handle(id);
  if (elsewhere.found)
    throw UsageError(what + " lies behind a link to another file, \"" + elsewhere.file +
                     "\", which is not followed: name that file itself, or copy the data into this one");
  return handle;
}

void refuse_data_elsewhere(const H5Handle& set, const std::string& what) {
  const H5Handle creation = h5_own(H5Dget_create_plist(set.get()), what);
  const std::string advice = ", which are not read: copy the data into the file itself (h5repack does)";
  const int files = H5Pget_external_count(creation.get());
  if (files > 0) {
    char name[256] = "";
    H5Pget_external(creation.get(), 0, sizeof name - 1, name, nullptr, nullptr);
    throw UsageError(what + " keeps its data in other files, \"" + name + "\"" + advice);
  }
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL)
    throw UsageError(what + " is virtual, made of datasets of other files" + advice);
}

}  // namespace

H5Handle open_group(hid_t where, const std::string& path) {
  return open_within(H5P_GROUP_ACCESS, "group \"" + path + "\"",
                     [&](hid_t access) { return H5Gopen2(where, path.c_str(), access); });
}

H5Handle open_dataset(hid_t where, const std::string& path) {
  const std::string what = "dataset \"" + path + "\"";
  H5Handle set =
      open_within(H5P_DATASET_ACCESS, what, [&](hid_t access) { return H5Dopen2(where, path.c_str(), access); });
  if (set) refuse_data_elsewhere(set, what);
  return set;
}

H5NoPlugins::H5NoPlugins() {
  h5_check(H5PLget_loading_state(&before_), "plugins");
  h5_check(H5PLset_loading_state(0), "plugins");
}
H5NoPlugins::~H5NoPlugins() {
  H5PLset_loading_state(before_);
}

H5Quiet::H5Quiet() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
void h5_be_quiet() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
H5Quiet::~H5Quiet() {
  H5Eset_auto2(H5E_DEFAULT, function_, data_);
}

namespace {

void write_array(hid_t object, const std::string& name, hid_t file_type, hid_t memory_type, const void* data,
                 std::size_t count, bool scalar) {
  const hsize_t n = count;
  const H5Handle space = h5_own(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, nullptr), name);
  const H5Handle a = h5_own(H5Acreate2(object, name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                            "attribute " + name);
  h5_check(H5Awrite(a.get(), memory_type, data), "attribute " + name);
}

struct OpenAttribute {
  H5Handle attribute, type, space;
  std::int64_t count;
};

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw UsageError("attribute \"" + name + "\" " + what);
}

OpenAttribute open_attribute(hid_t object, const std::string& name, H5T_class_t expected, std::size_t bytes) {
  if (H5Aexists(object, name.c_str()) <= 0) refuse(name, "is missing");
  OpenAttribute a;
  a.attribute = h5_own(H5Aopen(object, name.c_str(), H5P_DEFAULT), "attribute " + name);
  a.type = h5_own(H5Aget_type(a.attribute.get()), name);
  a.space = h5_own(H5Aget_space(a.attribute.get()), name);
  a.count = H5Sget_simple_extent_npoints(a.space.get());
  if (H5Tget_class(a.type.get()) != expected || (bytes && H5Tget_size(a.type.get()) != bytes))
    refuse(name, "has another type than the schema says");
  if (a.count < 0 || a.count > 65536) refuse(name, "has " + std::to_string(a.count) + " elements");
  return a;
}

template <class T>
T single(const std::vector<T>& values, const std::string& name) {
  if (values.size() != 1) refuse(name, "has " + std::to_string(values.size()) + " elements instead of 1");
  return values[0];
}

}  // namespace

void write_attribute(hid_t object, const std::string& name, std::span<const std::int64_t> values) {
  write_array(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, values.data(), values.size(), false);
}
void write_attribute(hid_t object, const std::string& name, std::span<const double> values) {
  write_array(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data(), values.size(), false);
}
void write_attribute(hid_t object, const std::string& name, std::int64_t value) {
  write_array(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, 1, true);
}
void write_attribute(hid_t object, const std::string& name, double value) {
  write_array(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value, 1, true);
}
void write_attribute(hid_t object, const std::string& name, const std::string& text) {
  const H5Handle type = h5_own(H5Tcopy(H5T_C_S1), name);
  h5_check(H5Tset_size(type.get(), text.empty() ? 1 : text.size()), name);
  h5_check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), name);
  write_array(object, name, type.get(), type.get(), text.empty() ? "\0" : text.data(), 1, true);
}

std::vector<std::int64_t> read_integers(hid_t object, const std::string& name) {
  const OpenAttribute a = open_attribute(object, name, H5T_INTEGER, 8);
  std::vector<std::int64_t> v(static_cast<std::size_t>(a.count));
  h5_check(H5Aread(a.attribute.get(), H5T_NATIVE_INT64, v.data()), "attribute " + name);
  return v;
}

std::vector<double> read_numbers(hid_t object, const std::string& name) {
  const OpenAttribute a = open_attribute(object, name, H5T_FLOAT, 8);
  std::vector<double> v(static_cast<std::size_t>(a.count));
  h5_check(H5Aread(a.attribute.get(), H5T_NATIVE_DOUBLE, v.data()), "attribute " + name);
  return v;
}

std::int64_t read_integer(hid_t object, const std::string& name) {
  return single(read_integers(object, name), name);
}
double read_number(hid_t object, const std::string& name) {
  return single(read_numbers(object, name), name);
}

std::string read_text(hid_t object, const std::string& name) {
  const OpenAttribute a = open_attribute(object, name, H5T_STRING, 0);
  if (a.count != 1 || H5Tis_variable_str(a.type.get()) != 0) refuse(name, "is no fixed-length string");
  std::string text(H5Tget_size(a.type.get()), '\0');
  h5_check(H5Aread(a.attribute.get(), a.type.get(), text.data()), "attribute " + name);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

H5Handle property_list(hid_t kind, const char* place) {
  return h5_own(H5Pcreate(kind), place);
}

H5Handle make_dataset(hid_t where, const std::string& name, hid_t type, const H5Handle& space) {
  const H5Handle creation = property_list(H5P_DATASET_CREATE, "dataset creation");
  h5_check(H5Pset_obj_track_times(creation.get(), 0), "dataset times");
  h5_check(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "dataset layout");
  h5_check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "dataset fill");
  h5_check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "dataset allocation");
  return h5_own(H5Dcreate2(where, name.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                "dataset " + name);
}

}  // namespace isohalo
