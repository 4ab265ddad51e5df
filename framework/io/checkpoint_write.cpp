#include "datatypes/error.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/checkpoint_names.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/temporary_file.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

H5Handle property_list(hid_t kind, const char* place) {
  return h5_own(H5Pcreate(kind), place);
}

H5Handle make_group(hid_t file, const char* name) {
  const H5Handle creation = property_list(H5P_GROUP_CREATE, "group creation");
  h5_check(H5Pset_obj_track_times(creation.get(), 0), "group times");
  return h5_own(H5Gcreate2(file, name, H5P_DEFAULT, creation.get(), H5P_DEFAULT), std::string("group ") + name);
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

void write_small_groups(hid_t file, const CheckpointMeta& m) {
  write_attribute(file, "format", std::string("isohalo"));
  write_attribute(file, "format_version", std::vector<std::int64_t>{kFormatMajor, kFormatMinor});
  const H5Handle grid = make_group(file, "grid");
  write_attribute(grid.get(), "dim", static_cast<std::int64_t>(m.shape.size()));
  write_attribute(grid.get(), "shape", m.shape);
  write_attribute(grid.get(), "origin", m.origin);
  write_attribute(grid.get(), "spacing", m.spacing);
  write_attribute(grid.get(), "periodic", m.periodic);
  write_attribute(grid.get(), "boundary_low", m.boundary_low);
  write_attribute(grid.get(), "boundary_high", m.boundary_high);
  const H5Handle time = make_group(file, "time");
  write_attribute(time.get(), "step", m.step);
  write_attribute(time.get(), "time", m.time);
  write_attribute(time.get(), "dt", m.dt);
  write_attribute(time.get(), "random_seed", m.random_seed);
  write_attribute(time.get(), "random_counter", m.random_counter);
  const H5Handle reduction = make_group(file, "reduction");
  write_attribute(reduction.get(), "tree_version", m.tree_version);
  write_attribute(reduction.get(), "tile", m.tile);
  write_attribute(reduction.get(), "method", m.method);
  write_attribute(reduction.get(), "change_sum", m.change_sum);
  write_attribute(reduction.get(), "residual", m.residual);
  write_attribute(reduction.get(), "residual_step", m.residual_step);
}

/// The canonical text as a dataset: attributes are limited to 64 KiB.
void write_config(hid_t file, const std::string& text, const Communicator& comm) {
  const H5Handle group = make_group(file, "config");
  write_attribute(group.get(), "digest", hex_digest(bytes_digest(text.data(), text.size())));
  const hsize_t bytes = text.size();
  const H5Handle space = h5_own(H5Screate_simple(1, &bytes, nullptr), "config");
  const H5Handle set = make_dataset(group.get(), "text", H5T_STD_U8LE, space);
  if (comm.rank() == 0)
    h5_check(H5Dwrite(set.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "config text");
}

/// The memory space of an array whose rows lie in C order with padding; false when its strides are no such thing.
template <class T, int D>
bool padded_space(const ArrayRef<T, D>& a, H5Handle& space, const T*& base) {
  hsize_t extents[D], start[D], count[D];
  if (a.stride[D - 1] != 1) return false;
  std::int64_t back = 0;
  for (int j = 0; j < D; ++j) {
    start[j] = static_cast<hsize_t>(a.ghost_low[j]);
    count[j] = static_cast<hsize_t>(a.owned.extent(j));
    back += a.ghost_low[j] * a.stride[j];
    const std::int64_t held = a.owned.extent(j) + a.ghost_low[j] + a.ghost_high[j];
    if (j == 0)
      extents[0] = static_cast<hsize_t>(held);
    else if (a.stride[j] <= 0 || a.stride[j - 1] % a.stride[j] || a.stride[j - 1] / a.stride[j] < held)
      return false;
    else
      extents[j] = static_cast<hsize_t>(a.stride[j - 1] / a.stride[j]);
  }
  space = h5_own(H5Screate_simple(D, extents, nullptr), "memory space");
  h5_check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), "memory selection");
  base = a.data - back;
  return true;
}

/// What this rank puts into one collective write.
struct Share {
  H5Handle memory, transfer;
  hid_t type = -1;
  const void* data = nullptr;
  std::vector<char> packed;
};

/// Everything that can fail on one rank alone, before the collective call.
template <class T, int D>
void prepare_share(Share& share, const H5Handle& file_space, const ArrayRef<T, D>& a) {
  hsize_t start[D], count[D];
  for (int j = 0; j < D; ++j) {
    start[j] = static_cast<hsize_t>(a.owned.low[j]);
    count[j] = static_cast<hsize_t>(a.owned.extent(j));
  }
  h5_check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), "file selection");
  share.type = StoredType<T>::memory();
  const T* base = nullptr;
  if (padded_space(a, share.memory, base)) {
    share.data = base;
  } else {
    share.packed.resize(static_cast<std::size_t>(a.owned.cells()) * sizeof(T));
    T* out = reinterpret_cast<T*>(share.packed.data());
    for_each_cell(a.owned, [&](const Index<D>& i) { *out++ = a.at(i); });
    share.data = share.packed.data();
    share.memory = h5_own(H5Screate_simple(D, count, nullptr), "memory space");
  }
  share.transfer = property_list(H5P_DATASET_XFER, "transfer");
  h5_check(H5Pset_dxpl_mpio(share.transfer.get(), H5FD_MPIO_COLLECTIVE), "collective transfer");
}

template <int D>
void write_field(hid_t fields, const CartesianDomain<D>& domain, const FieldHandle<D>& f) {
  hsize_t shape[D];
  for (int j = 0; j < D; ++j) shape[j] = static_cast<hsize_t>(domain.global().extent(j));
  H5Handle space, set;
  agreed(domain.comm(), [&] {
    space = h5_own(H5Screate_simple(D, shape, nullptr), "field " + f.name);
    std::visit(
        [&](const auto& a) {
          using T = std::remove_const_t<std::remove_pointer_t<decltype(a.data)>>;
          set = make_dataset(fields, f.name, StoredType<T>::file(), space);
        },
        f.array);
  });
  Share share;
  agreed(domain.comm(), [&] {
    std::visit([&](const auto& a) { prepare_share(share, space, a); }, f.array);
    detail::fault_point("data");
  });
  detail::agreed_write(domain.comm(), [&] {
    h5_check(H5Dwrite(set.get(), share.type, share.memory.get(), space.get(), share.transfer.get(), share.data),
             "write of field data");
    detail::fault_point("data_written");
  });
}

void write_statistics(hid_t fields, const std::string& name, const std::string& units, const std::string& role,
                      const FieldStatistics& s) {
  const H5Handle set = h5_own(H5Dopen2(fields, name.c_str(), H5P_DEFAULT), "field " + name);
  write_attribute(set.get(), "units", units);
  write_attribute(set.get(), "role", role);
  write_attribute(set.get(), "digest", hex_digest(s.digest));
  write_attribute(set.get(), "min", s.min);
  write_attribute(set.get(), "max", s.max);
  write_attribute(set.get(), "nan_count", s.nan_count);
}

}  // namespace

template <int D>
std::vector<FieldStatistics> write_checkpoint(const fs::path& file, const CartesianDomain<D>& domain,
                                              const CheckpointMeta& meta,
                                              const std::vector<FieldHandle<D>>& fields) {
  const H5Quiet quiet;
  const Communicator& comm = domain.comm();
  const fs::path temporary = file.string() + ".tmp";
  std::vector<FieldStatistics> statistics;
  for (const auto& f : fields) statistics.push_back(field_statistics(domain, f.array));

  auto most = static_cast<std::int64_t>(meta.config.size()) + (1 << 16);  // and all fields
  for (const auto& f : fields)
    most += domain.global().cells() *
            std::visit([](const auto& a) { return static_cast<std::int64_t>(sizeof(*a.data)); }, f.array);
  agreed(comm, [&] {
    detail::fault_point("free_space");
    detail::check_room(temporary, most);
  });
  try {
    detail::TemporaryFile out(temporary, comm, most);
    H5Handle group;  // closed before the file
    agreed(comm, [&] {
      write_small_groups(out.get(), meta);
      write_config(out.get(), meta.config, comm);
      group = make_group(out.get(), "fields");
      detail::fault_point("groups");
    });
    for (const auto& f : fields) write_field(group.get(), domain, f);
    agreed(comm, [&] {
      for (std::size_t k = 0; k < fields.size(); ++k)
        write_statistics(group.get(), fields[k].name, fields[k].units, fields[k].role, statistics[k]);
      group.close();
      detail::fault_point("digests");
    });
    agreed(comm, [&] {
      write_attribute(out.get(), "complete", std::int64_t{1});
      detail::fault_point("complete");
    });
    out.close();
    out.publish(file);
  } catch (const MpiError& e) {
    throw MpiError(e.mpi_code(), "cannot write " + file.string() + " (earlier checkpoints are kept): " + e.what());
  } catch (const Error& e) {
    throw Error(e.code(), "cannot write " + file.string() + " (earlier checkpoints are kept): " + e.what());
  }
  return statistics;
}

#define ISOHALO_INSTANTIATE(D)                               \
  template std::vector<FieldStatistics> write_checkpoint<D>( \
      const fs::path&, const CartesianDomain<D>&, const CheckpointMeta&, const std::vector<FieldHandle<D>>&);
ISOHALO_INSTANTIATE(1)
ISOHALO_INSTANTIATE(2)
ISOHALO_INSTANTIATE(3)
ISOHALO_INSTANTIATE(4)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
