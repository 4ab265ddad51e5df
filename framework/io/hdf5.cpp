#include "framework/io/hdf5.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "datatypes/error.hpp"

namespace isohalo {

void H5Handle::close() noexcept {
  const hid_t id = release();
  if (id < 0) return;
  const H5I_type_t kind = H5Iget_type(id);
  if (kind == H5I_FILE)
    H5Fclose(id);
  else if (kind == H5I_DATASET)
    H5Dclose(id);  // closes it even when that fails
  else
    H5Idec_ref(id);
}

hid_t h5_check(hid_t result, const std::string& place) {
  if (result >= 0) return result;
  std::string why;
  const auto keep_innermost = [](unsigned, const H5E_error2_t* e, void* out) -> herr_t {
    if (e->desc) *static_cast<std::string*>(out) = e->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &why);
  H5Eclear2(H5E_DEFAULT);
  std::replace(why.begin(), why.end(), '\n', ' ');  // MPI's reasons have several lines
  throw RunError(place + ": HDF5 says: " + (why.empty() ? "unknown error" : why));
}

H5Handle h5_own(hid_t result, const std::string& place) {
  return H5Handle(h5_check(result, place));
}

namespace {

/// Of an iteration over links or attributes. In native order: for any other one HDF5 1.10.8 makes a table, and
/// frees addresses that it never set when a group of more than 8 objects is damaged.
template <class Iterate>
std::vector<std::string> sorted_names(Iterate iterate, hid_t object, const std::string& place) {
  std::vector<std::string> names;
  hsize_t at = 0;
  const auto append = [](hid_t, const char* name, const auto*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  h5_check(iterate(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, append, &names), place);
  std::sort(names.begin(), names.end());
  return names;
}

/// Notes the other file and follows no link to it.
herr_t refuse_other_file(const char*, const char*, const char* file, const char*, unsigned*, hid_t, void* out) {
  *static_cast<std::optional<std::string>*>(out) = file ? file : "";
  return -1;
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

std::vector<std::string> h5_names(hid_t group, const std::string& place) {
  return sorted_names(H5Literate, group, place);
}
std::vector<std::string> h5_attributes(hid_t object, const std::string& place) {
  return sorted_names(H5Aiterate2, object, place);
}

H5Handle open_object(hid_t where, const std::string& path, H5I_type_t kind) {
  const bool group = kind == H5I_GROUP;
  const std::string what = (group ? "group \"" : "dataset \"") + path + "\"";
  std::optional<std::string> elsewhere;
  const H5Handle access = h5_own(H5Pcreate(group ? H5P_GROUP_ACCESS : H5P_DATASET_ACCESS), "access");
  h5_check(H5Pset_elink_cb(access.get(), refuse_other_file, &elsewhere), "links to other files");
  H5Handle object(group ? H5Gopen2(where, path.c_str(), access.get())
                        : H5Dopen2(where, path.c_str(), access.get()));
  if (!object) H5Eclear2(H5E_DEFAULT);
  if (elsewhere)
    throw UsageError(what + " lies behind a link to another file, \"" + *elsewhere +
                     "\", which is not followed: name that file itself, or copy the data into this one");
  if (!object) throw UsageError("it has no " + what + " that can be opened");
  if (!group) refuse_data_elsewhere(object, what);
  return object;
}

H5Quiet::H5Quiet() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5PLget_loading_state(&plugins_);
  H5PLset_loading_state(0);
  h5_be_quiet();
}
H5Quiet::~H5Quiet() {
  H5PLset_loading_state(plugins_);
  H5Eset_auto2(H5E_DEFAULT, function_, data_);
}
void h5_be_quiet() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

H5Handle make_dataset(hid_t where, const std::string& name, hid_t type, const H5Handle& space) {
  const H5Handle creation = h5_own(H5Pcreate(H5P_DATASET_CREATE), "dataset creation");
  h5_check(H5Pset_obj_track_times(creation.get(), 0), "dataset times");
  h5_check(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "dataset layout");
  h5_check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "dataset fill");
  h5_check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "dataset allocation");
  return h5_own(H5Dcreate2(where, name.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                "dataset " + name);
}

namespace {

void write_values(hid_t object, const std::string& name, hid_t file_type, hid_t memory_type, const H5Handle& space,
                  const void* values) {
  const H5Handle a = h5_own(H5Acreate2(object, name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                            "attribute " + name);
  h5_check(H5Awrite(a.get(), memory_type, values), "attribute " + name);
}

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw UsageError("attribute \"" + name + "\" " + what);
}

struct OpenAttribute {
  H5Handle attribute, type;
  std::size_t count;
};

/// `bytes`: of an element; 0 for any number.
OpenAttribute open_attribute(hid_t object, const std::string& name, H5T_class_t expected, std::size_t bytes) {
  if (H5Aexists(object, name.c_str()) <= 0) refuse(name, "is missing");
  OpenAttribute a;
  a.attribute = h5_own(H5Aopen(object, name.c_str(), H5P_DEFAULT), "attribute " + name);
  a.type = h5_own(H5Aget_type(a.attribute.get()), name);
  const H5Handle space = h5_own(H5Aget_space(a.attribute.get()), name);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (H5Tget_class(a.type.get()) != expected || (bytes && H5Tget_size(a.type.get()) != bytes))
    refuse(name, "has another type than the schema says");
  if (count < 0 || count > 65536) refuse(name, "has " + std::to_string(count) + " elements");
  a.count = static_cast<std::size_t>(count);
  return a;
}

}  // namespace

template <class T>
void write_attribute(hid_t object, const std::string& name, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    const H5Handle space = h5_own(H5Screate(H5S_SCALAR), name), type = h5_own(H5Tcopy(H5T_C_S1), name);
    h5_check(H5Tset_size(type.get(), std::max<std::size_t>(value.size(), 1)), name);
    h5_check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), name);
    write_values(object, name, type.get(), type.get(), space, value.c_str());
  } else if constexpr (std::is_arithmetic_v<T>) {
    const H5Handle space = h5_own(H5Screate(H5S_SCALAR), name);
    write_values(object, name, StoredType<T>::file(), StoredType<T>::memory(), space, &value);
  } else {
    using Element = typename T::value_type;
    const hsize_t n = value.size();
    const H5Handle space = h5_own(H5Screate_simple(1, &n, nullptr), name);
    write_values(object, name, StoredType<Element>::file(), StoredType<Element>::memory(), space, value.data());
  }
}

template <class T>
T read_attribute(hid_t object, const std::string& name) {
  if constexpr (std::is_same_v<T, std::string>) {
    const OpenAttribute a = open_attribute(object, name, H5T_STRING, 0);
    if (a.count != 1 || H5Tis_variable_str(a.type.get()) != 0) refuse(name, "is no fixed-length string");
    std::string text(H5Tget_size(a.type.get()), '\0');
    h5_check(H5Aread(a.attribute.get(), a.type.get(), text.data()), "attribute " + name);
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto values = read_attribute<std::vector<T>>(object, name);
    if (values.size() != 1) refuse(name, "has " + std::to_string(values.size()) + " elements instead of 1");
    return values[0];
  } else {
    using Element = typename T::value_type;
    const OpenAttribute a =
        open_attribute(object, name, std::is_integral_v<Element> ? H5T_INTEGER : H5T_FLOAT, sizeof(Element));
    T values(a.count);
    h5_check(H5Aread(a.attribute.get(), StoredType<Element>::memory(), values.data()), "attribute " + name);
    return values;
  }
}

#define ISOHALO_INSTANTIATE(T)                                        \
  template void write_attribute(hid_t, const std::string&, const T&); \
  template T read_attribute<T>(hid_t, const std::string&);
ISOHALO_INSTANTIATE(std::string)
ISOHALO_INSTANTIATE(std::vector<std::int64_t>)
ISOHALO_INSTANTIATE(std::vector<double>)
ISOHALO_INSTANTIATE(std::int64_t)
ISOHALO_INSTANTIATE(double)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
