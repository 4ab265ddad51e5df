#include <fmt/format.h>

#include <algorithm>

#include "datatypes/streaming_copy.hpp"
#include "framework/halo/faces.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/digest.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/io/file_structure.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/readable.hpp"
#include "framework/io/schema.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

/// Opens for reading with plain POSIX I/O: each rank on its own, nothing to hang on. A checkpoint must be built as
/// one before HDF5 sees it.
H5Handle open_file(const fs::path& file, bool checkpoint) {
  refuse_unreadable(file);
  const bool hdf5 = H5Fis_hdf5(file.c_str()) > 0;
  if (hdf5 && checkpoint) check_file_structure(file);
  const hid_t id = hdf5 ? H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT) : -1;
  if (id >= 0) return H5Handle(id);
  H5Eclear2(H5E_DEFAULT);
  refuse_unreadable(file);  // a live run may have deleted it since
  throw UsageError(file.string() + (hdf5 ? " cannot be opened: it is truncated or damaged" : " is no HDF5 file"));
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
  for (const char* name : {"float64", "float32", "uint8"}) {
    bool same = false;
    with_stored_type(name, [&](auto v) { same = H5Tequal(type.get(), StoredType<decltype(v)>::file()) > 0; });
    if (same) return name;
  }
  return "of a type that the schema does not know";
}

std::string read_config(hid_t file) {
  const H5Handle group = open_object(file, "config", H5I_GROUP);
  const H5Handle set = open_object(group.get(), "text", H5I_DATASET);
  const auto shape = shape_of(set);
  if (shape.size() != 1 || shape[0] > (1 << 28)) throw UsageError("the config text has an impossible size");
  std::string text(static_cast<std::size_t>(shape[0]), '\0');
  h5_check(H5Dread(set.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "config text");
  if (bytes_digest(text.data(), text.size()) != parse_digest(read_attribute<std::string>(group.get(), "digest")))
    throw UsageError("the config text does not match its digest");
  return text;
}

/// `c`: what of the file is known already. Throws UsageError also for a field of another shape than it should have.
StoredField read_field_meta(hid_t group, const std::string& name, const StoredCheckpoint& c) {
  const H5Handle set = open_object(group, name, H5I_DATASET);
  // With many fields HDF5 keeps them where the check of the structure does not look.
  if (H5Pget_nfilters(h5_own(H5Dget_create_plist(set.get()), name).get()) != 0)
    throw UsageError("field \"" + name + "\" is stored through filters, as no checkpoint is");
  StoredField f;
  f.name = name;
  f.type = type_name(set);
  f.shape = shape_of(set);
  f.units = read_attribute<std::string>(set.get(), "units");
  f.role = read_attribute<std::string>(set.get(), "role");
  f.digest = parse_digest(read_attribute<std::string>(set.get(), "digest"));
  f.min = read_attribute<double>(set.get(), "min");
  f.max = read_attribute<double>(set.get(), "max");
  f.nan_count = read_attribute<std::int64_t>(set.get(), "nan_count");
  if (c.minor > 0 && H5Aexists(set.get(), "face") > 0) f.face = read_attribute<std::int64_t>(set.get(), "face");
  const auto d = static_cast<std::int64_t>(c.meta.shape.size());
  if (f.face < -1 || f.face >= d)
    throw UsageError(fmt::format("field \"{}\" lies on faces of dimension {}, the grid has {}", name, f.face, d));
  std::vector<std::int64_t> shape = c.meta.shape;
  if (f.face >= 0 && c.meta.periodic[static_cast<std::size_t>(f.face)] == 0)
    ++shape[static_cast<std::size_t>(f.face)];
  if (f.shape != shape)
    throw UsageError("field \"" + name + "\" has another shape than the grid" + (f.face < 0 ? "" : "'s faces"));
  return f;
}

void read_groups(hid_t file, CheckpointMeta& m) {
  detail::for_each_attribute([&](const detail::SchemaAttribute& a, auto member) {
    const H5Handle group = open_object(file, a.group, H5I_GROUP);
    m.*member = read_attribute<std::remove_cvref_t<decltype(m.*member)>>(group.get(), a.name);
  });
  const H5Handle grid = open_object(file, "grid", H5I_GROUP);
  const auto d = static_cast<std::size_t>(read_attribute<std::int64_t>(grid.get(), "dim"));
  if (d < 1 || d > 4 || m.shape.size() != d || m.origin.size() != d || m.spacing.size() != d ||
      m.periodic.size() != d)
    throw UsageError("the grid's attributes disagree about the number of dimensions");
  for (std::int64_t n : m.shape)
    if (n < 1) throw UsageError("the grid has an extent of " + std::to_string(n));
}

StoredCheckpoint read_all_meta(const H5Handle& file) {
  if (H5Aexists(file.get(), "format") <= 0 || read_attribute<std::string>(file.get(), "format") != "isohalo")
    throw UsageError("it is no isohalo checkpoint");
  StoredCheckpoint c;
  const auto version = read_attribute<std::vector<std::int64_t>>(file.get(), "format_version");
  if (version.size() != 2) throw UsageError("the format version is damaged");
  c.major = version[0];
  c.minor = version[1];
  if (c.major < 1 || c.minor < 0) throw UsageError("its format version is none");
  if (c.major > kFormatMajor)
    throw UsageError("its format version " + std::to_string(c.major) + "." + std::to_string(c.minor) +
                     " is newer than this program's " + std::to_string(kFormatMajor) + ".x: use a newer isohalo");
  if (H5Aexists(file.get(), "complete") <= 0 || read_attribute<std::int64_t>(file.get(), "complete") != 1)
    throw UsageError("it is incomplete: the run that wrote it was interrupted");
  read_groups(file.get(), c.meta);
  c.meta.config = read_config(file.get());
  const H5Handle group = open_object(file.get(), "fields", H5I_GROUP);
  for (const auto& n : h5_names(group.get(), "list of fields"))
    c.fields.push_back(read_field_meta(group.get(), n, c));
  return c;
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
  check_rows(a);
  FieldReader reader(file, name);
  const std::int64_t n = a.owned.extent(D - 1);
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
    if (view) {
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
    return read_all_meta(open_file(file, true));
  });
}

StoredCheckpoint read_checkpoint_meta(const fs::path& file, const Communicator& comm) {
  StoredCheckpoint c;
  agreed(comm, [&] { c = read_checkpoint_meta(file); });
  return c;
}

void refuse_other_field(const fs::path& file, const StoredCheckpoint& stored, const std::string& name,
                        const std::string& type, const std::vector<std::int64_t>& shape, int face) {
  const std::string field = file.string() + ": field \"" + name + "\"";
  const StoredField* const s = stored.find(name);
  if (!s) throw UsageError(field + " is missing");
  if (s->type != type) throw UsageError(field + " is " + s->type + ", this run computes in " + type);
  if (s->shape != shape) throw UsageError(field + " has another shape than this run's grid");
  if (s->face != face) throw UsageError(field + " lies on other faces, or in cells, than this run's");
}

template <int D>
void read_checkpoint_fields(const fs::path& file, const StoredCheckpoint& stored, const CartesianDomain<D>& domain,
                            const std::vector<FieldHandle<D>>& fields) {
  const H5Quiet quiet;
  std::vector<std::uint64_t> digests;
  agreed(domain.comm(), [&] {
    naming(file, [&] {
      open_file(file, true);
      for (const auto& f : fields) {
        const Box<D> global = field_domain(domain, f.face).global();  // it starts at 0
        const std::vector<std::int64_t> shape(global.high.begin(), global.high.end());
        std::visit(
            [&](const auto& a) {
              using T = std::remove_const_t<std::remove_pointer_t<decltype(a.data)>>;
              refuse_other_field(file, stored, f.name, StoredType<T>::name, shape, f.face);
              digests.push_back(read_field(file, f.name, global, a));
              detail::fault_point("read");
            },
            f.array);
      }
    });
  });
  for (std::size_t k = 0; k < fields.size(); ++k) {
    const std::uint64_t found = domain.comm().sum(digests[k]);
    if (const StoredField& s = *stored.find(fields[k].name); s.digest != found)
      throw UsageError(file.string() + ": field \"" + s.name + "\" has digest " + hex_digest(found) +
                       ", the file says " + hex_digest(s.digest) + ": its data is damaged");
  }
}

template <int D>
std::vector<double> read_dataset(const fs::path& file, const std::string& dataset, const Index<D>& shape,
                                 const Box<D>& box, const std::string& expected) {
  const H5Quiet quiet;
  return naming(file, [&] {
    const H5Handle h = open_file(file, false), set = open_object(h.get(), dataset, H5I_DATASET);
    const H5Handle type = h5_own(H5Dget_type(set.get()), "type");
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind != H5T_FLOAT && kind != H5T_INTEGER && kind != H5T_ENUM)  // h5py's booleans are of the last kind
      throw UsageError("dataset \"" + dataset + "\" holds neither real nor integer numbers");
    const auto found = shape_of(set);
    if (!std::equal(found.begin(), found.end(), shape.begin(), shape.end())) {
      const std::string text = found.empty() ? "of a single value" : fmt::format("{}", fmt::join(found, " x "));
      throw UsageError("dataset \"" + dataset + "\" has shape " + text + ", " + expected + " " +
                       shape_string<D>(shape));
    }
    Piece piece;
    for (int j = 0; j < D; ++j) {
      piece.start.push_back(static_cast<hsize_t>(box.low[j]));
      piece.extents.push_back(static_cast<hsize_t>(box.extent(j)));
    }
    std::vector<double> values(static_cast<std::size_t>(box.cells()));
    read_piece(set, H5T_NATIVE_DOUBLE, piece, values.data(), "read of \"" + dataset + "\"");
    return values;
  });
}

#define ISOHALO_INSTANTIATE(D)                                                                                 \
  template void read_checkpoint_fields<D>(const fs::path&, const StoredCheckpoint&, const CartesianDomain<D>&, \
                                          const std::vector<FieldHandle<D>>&);                                 \
  template std::vector<double> read_dataset<D>(const fs::path&, const std::string&, const Index<D>&,           \
                                               const Box<D>&, const std::string&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
