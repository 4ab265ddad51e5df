#include <algorithm>
#include <cmath>
#include <cstring>

#include "datatypes/error.hpp"
#include "datatypes/streaming_copy.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/checkpoint_names.hpp"
#include "framework/io/digest.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/io/file_structure.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/readable.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

void refuse_foreign(const fs::path& file) {
  refuse_unreadable(file);
  if (H5Fis_hdf5(file.c_str()) > 0) return;
  refuse_unreadable(file);  // a live run may have deleted it since
  throw UsageError(file.string() + " is no HDF5 file");
}

/// Opens for reading with plain POSIX I/O: each rank on its own, nothing to hang on.
H5Handle open_hdf5(const fs::path& file) {
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (id < 0) {
    H5Eclear2(H5E_DEFAULT);
    refuse_unreadable(file);
    throw UsageError(file.string() + " cannot be opened: it is truncated or damaged");
  }
  return H5Handle(id);
}

H5Handle open_file(const fs::path& file) {
  refuse_foreign(file);
  return open_hdf5(file);
}

/// The same for a checkpoint, which HDF5 only sees when it is built as one.
H5Handle open_checkpoint(const fs::path& file) {
  refuse_foreign(file);
  check_file_structure(file);
  return open_hdf5(file);
}

H5Handle existing_group(hid_t file, const char* name) {
  if (H5Lexists(file, name, H5P_DEFAULT) <= 0) throw UsageError(std::string("group \"") + name + "\" is missing");
  H5Handle group = open_group(file, name);
  if (!group) throw UsageError(std::string("group \"") + name + "\" cannot be opened");
  return group;
}

H5Handle existing_dataset(hid_t group, const std::string& name) {
  H5Handle set = open_dataset(group, name);
  if (!set) throw UsageError("dataset \"" + name + "\" cannot be opened");
  return set;
}

std::vector<std::int64_t> shape_of(const H5Handle& set) {
  const H5Handle space = h5_own(H5Dget_space(set.get()), "dataspace");
  const int d = H5Sget_simple_extent_ndims(space.get());
  if (d < 0) throw UsageError("a dataset has no simple shape");
  std::vector<hsize_t> n(static_cast<std::size_t>(d));
  H5Sget_simple_extent_dims(space.get(), n.data(), nullptr);
  return {n.begin(), n.end()};
}

std::string type_name(const H5Handle& set) {
  const H5Handle type = h5_own(H5Dget_type(set.get()), "type");
  if (H5Tequal(type.get(), H5T_IEEE_F64LE) > 0) return "float64";
  if (H5Tequal(type.get(), H5T_IEEE_F32LE) > 0) return "float32";
  if (H5Tequal(type.get(), H5T_STD_U8LE) > 0) return "uint8";
  return "of a type that the schema does not know";
}

std::string read_config(hid_t file) {
  const H5Handle group = existing_group(file, "config");
  const H5Handle set = existing_dataset(group.get(), "text");
  const auto shape = shape_of(set);
  if (shape.size() != 1 || shape[0] > (1 << 28)) throw UsageError("the config text has an impossible size");
  std::string text(static_cast<std::size_t>(shape[0]), '\0');
  h5_check(H5Dread(set.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "config text");
  if (bytes_digest(text.data(), text.size()) != parse_digest(read_text(group.get(), "digest")))
    throw UsageError("the config text does not match its digest");
  return text;
}

StoredField read_field_meta(hid_t group, const std::string& name) {
  const H5Handle set = existing_dataset(group, name);
  // With many fields HDF5 keeps them where the check of the structure does not look.
  if (H5Pget_nfilters(h5_own(H5Dget_create_plist(set.get()), name).get()) != 0)
    throw UsageError("field \"" + name + "\" is stored through filters, as no checkpoint is");
  StoredField f;
  f.name = name;
  f.type = type_name(set);
  f.shape = shape_of(set);
  f.units = read_text(set.get(), "units");
  f.role = read_text(set.get(), "role");
  f.digest = parse_digest(read_text(set.get(), "digest"));
  f.min = read_number(set.get(), "min");
  f.max = read_number(set.get(), "max");
  f.nan_count = read_integer(set.get(), "nan_count");
  return f;
}

void read_groups(hid_t file, CheckpointMeta& m) {
  const H5Handle grid = existing_group(file, "grid");
  m.shape = read_integers(grid.get(), "shape");
  m.origin = read_numbers(grid.get(), "origin");
  m.spacing = read_numbers(grid.get(), "spacing");
  m.periodic = read_integers(grid.get(), "periodic");
  m.boundary_low = read_text(grid.get(), "boundary_low");
  m.boundary_high = read_text(grid.get(), "boundary_high");
  const auto d = static_cast<std::size_t>(read_integer(grid.get(), "dim"));
  if (d < 1 || d > 4 || m.shape.size() != d || m.origin.size() != d || m.spacing.size() != d ||
      m.periodic.size() != d)
    throw UsageError("the grid's attributes disagree about the number of dimensions");
  for (std::int64_t n : m.shape)
    if (n < 1) throw UsageError("the grid has an extent of " + std::to_string(n));
  const H5Handle time = existing_group(file, "time");
  m.step = read_integer(time.get(), "step");
  m.time = read_number(time.get(), "time");
  m.dt = read_number(time.get(), "dt");
  m.random_seed = read_integer(time.get(), "random_seed");
  m.random_counter = read_integer(time.get(), "random_counter");
  const H5Handle reduction = existing_group(file, "reduction");
  m.tree_version = read_integer(reduction.get(), "tree_version");
  m.tile = read_integers(reduction.get(), "tile");
  m.method = read_text(reduction.get(), "method");
  m.change_sum = read_number(reduction.get(), "change_sum");
  m.residual = read_number(reduction.get(), "residual");
  m.residual_step = read_integer(reduction.get(), "residual_step");
}

StoredCheckpoint read_all_meta(const H5Handle& file) {
  if (H5Aexists(file.get(), "format") <= 0 || read_text(file.get(), "format") != "isohalo")
    throw UsageError("it is no isohalo checkpoint");
  StoredCheckpoint c;
  const auto version = read_integers(file.get(), "format_version");
  if (version.size() != 2) throw UsageError("the format version is damaged");
  c.major = version[0];
  c.minor = version[1];
  if (c.major < 1 || c.minor < 0) throw UsageError("its format version is none");
  if (c.major > kFormatMajor)
    throw UsageError("its format version " + std::to_string(c.major) + "." + std::to_string(c.minor) +
                     " is newer than this program's " + std::to_string(kFormatMajor) + ".x: use a newer isohalo");
  if (H5Aexists(file.get(), "complete") <= 0 || read_integer(file.get(), "complete") != 1)
    throw UsageError("it is incomplete: the run that wrote it was interrupted");
  read_groups(file.get(), c.meta);
  c.meta.config = read_config(file.get());
  const H5Handle group = existing_group(file.get(), "fields");
  for (const auto& n : h5_names(group.get(), "list of fields")) {
    c.fields.push_back(read_field_meta(group.get(), n));
    if (c.fields.back().shape != c.meta.shape)
      throw UsageError("field \"" + n + "\" has another shape than the grid");
  }
  return c;
}

/// Runs `work` and puts the file's name before whatever it throws, as a UsageError.
template <class F>
auto naming(const fs::path& file, F&& work) {
  try {
    return work();
  } catch (const Error& e) {
    const std::string text = e.what();
    if (text.rfind(file.string(), 0) == 0) throw UsageError(text);
    throw UsageError(file.string() + ": " + text);
  }
}

/// Reads the box into memory of the box's own shape.
template <class T, int D>
void read_box(const H5Handle& set, const Box<D>& box, hid_t memory_type, T* data) {
  hsize_t start[D], count[D];
  for (int j = 0; j < D; ++j) {
    start[j] = static_cast<hsize_t>(box.low[j]);
    count[j] = static_cast<hsize_t>(box.extent(j));
  }
  const H5Handle from = h5_own(H5Dget_space(set.get()), "file space");
  h5_check(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), "file selection");
  const H5Handle to = h5_own(H5Screate_simple(D, count, nullptr), "memory space");
  h5_check(H5Dread(set.get(), memory_type, to.get(), from.get(), H5P_DEFAULT, data), "read of field data");
}

/// Bytes from which a row among other ranks' is worth a system call of its own.
constexpr std::int64_t kLongRow = 8192;
/// Of a row at a time: in the first-level cache between its copy and its digest.
constexpr std::int64_t kCopyBytes = 4096;

/// Adjacent cells from the page cache into a row; returns their sum in the digest. The cells are read once.
template <class T>
std::uint64_t copy_row(T* to, const char* from, std::int64_t n, std::int64_t first) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  std::uint64_t sum = 0;
  for (std::int64_t x = 0; x < n; x += kCopyBytes / size) {
    const std::int64_t cells = std::min(n - x, kCopyBytes / size);
    detail::streaming_copy(to + x, from + x * size, static_cast<std::size_t>(cells * size));
    sum += cells_digest<T>(from + x * size, cells, first + x);
  }
  return sum;
}

/// Fills the owned cells, row by row, and returns their sum in the digest.
template <class T, int D>
std::uint64_t read_field(const fs::path& file, const std::string& name, const Box<D>& global,
                         const ArrayRef<T, D>& a) {
  FieldReader reader(file, name);
  const std::int64_t n = a.owned.extent(D - 1), step = a.stride[D - 1];
  // A window of the page cache holds other ranks' cells too: not worth it when they are most of it.
  const bool view = 2 * n >= global.extent(D - 1) || n * static_cast<std::int64_t>(sizeof(T)) < kLongRow;
  std::uint64_t digest = 0;
  Piece row;
  row.cells = n;
  row.start.assign(D, 0);
  row.extents.assign(D, 1);
  row.extents.back() = static_cast<hsize_t>(n);
  for_each_row(a.owned, [&](const Index<D>& i) {
    row.first = linear_index(global, i);
    for (int j = 0; j < D; ++j) row.start[static_cast<std::size_t>(j)] = static_cast<hsize_t>(i[j]);
    T* const to = &a.at(i);
    if (step != 1) {
      const char* const from = reader.view(row, sizeof(T));
      for (std::int64_t x = 0; x < n; ++x) to[x * step] = load<T>(from, x);
      digest += cells_digest<T>(from, n, row.first);
    } else if (view) {
      digest += copy_row(to, reader.view(row, sizeof(T)), n, row.first);
    } else {
      reader.read(row, sizeof(T), reinterpret_cast<char*>(to));
      digest += cells_digest<T>(reinterpret_cast<const char*>(to), n, row.first);
    }
  });
  detail::streaming_fence();
  return digest;
}

}  // namespace

StoredCheckpoint read_checkpoint_meta(const fs::path& file) {
  const H5Quiet quiet;
  return naming(file, [&] {
    detail::fault_point("read_meta");
    return read_all_meta(open_checkpoint(file));
  });
}

StoredCheckpoint read_checkpoint_meta(const fs::path& file, const Communicator& comm) {
  StoredCheckpoint c;
  agreed(comm, [&] { c = read_checkpoint_meta(file); });
  return c;
}

template <int D>
void read_checkpoint_fields(const fs::path& file, const StoredCheckpoint& stored, const CartesianDomain<D>& domain,
                            const std::vector<FieldHandle<D>>& fields) {
  const H5Quiet quiet;
  std::vector<std::uint64_t> digests;
  agreed(domain.comm(), [&] {
    naming(file, [&] {
      open_checkpoint(file);
      for (const auto& f : fields) {
        const auto s = std::find_if(stored.fields.begin(), stored.fields.end(),
                                    [&](const StoredField& x) { return x.name == f.name; });
        if (s == stored.fields.end()) throw UsageError("field \"" + f.name + "\" is missing");
        std::visit(
            [&](const auto& a) {
              using T = std::remove_const_t<std::remove_pointer_t<decltype(a.data)>>;
              if (s->type != StoredType<T>::name)
                throw UsageError("field \"" + f.name + "\" is " + s->type + ", this run computes in " +
                                 StoredType<T>::name);
              for (int j = 0; j < D; ++j)
                if (s->shape.size() != D || s->shape[static_cast<std::size_t>(j)] != domain.global().extent(j))
                  throw UsageError("field \"" + f.name + "\" has another shape than this run's grid");
              digests.push_back(read_field(file, f.name, domain.global(), a));
              detail::fault_point("read");
            },
            f.array);
      }
    });
  });
  for (std::size_t k = 0; k < fields.size(); ++k) {
    const std::uint64_t found = domain.comm().sum(digests[k]);
    for (const auto& s : stored.fields)
      if (s.name == fields[k].name && s.digest != found)
        throw UsageError(file.string() + ": field \"" + s.name + "\" has digest " + hex_digest(found) +
                         ", the file says " + hex_digest(s.digest) + ": its data is damaged");
  }
}

template <int D>
std::vector<double> read_dataset(const fs::path& file, const std::string& dataset, const Index<D>& shape,
                                 const Box<D>& box) {
  const H5Quiet quiet;
  const H5NoPlugins no_plugins;
  return naming(file, [&] {
    const H5Handle h = open_file(file);
    const H5Handle set = open_dataset(h.get(), dataset);
    if (!set) throw UsageError("it has no dataset \"" + dataset + "\"");
    const H5Handle type = h5_own(H5Dget_type(set.get()), "type");
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind != H5T_FLOAT && kind != H5T_INTEGER)
      throw UsageError("dataset \"" + dataset + "\" holds neither real nor integer numbers");
    const auto found = shape_of(set);
    if (!std::equal(found.begin(), found.end(), shape.begin(), shape.end())) {
      std::string text;
      for (std::size_t j = 0; j < found.size(); ++j) text += (j ? " x " : "") + std::to_string(found[j]);
      throw UsageError("dataset \"" + dataset + "\" has shape " + (text.empty() ? "of a single value" : text) +
                       ", the grid is " + shape_string<D>(shape));
    }
    std::vector<double> values(static_cast<std::size_t>(box.cells()));
    read_box(set, box, H5T_NATIVE_DOUBLE, values.data());
    return values;
  });
}

#define ISOHALO_INSTANTIATE(D)                                                                                 \
  template void read_checkpoint_fields<D>(const fs::path&, const StoredCheckpoint&, const CartesianDomain<D>&, \
                                          const std::vector<FieldHandle<D>>&);                                 \
  template std::vector<double> read_dataset<D>(const fs::path&, const std::string&, const Index<D>&, const Box<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
