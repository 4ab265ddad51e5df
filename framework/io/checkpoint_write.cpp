#include "datatypes/error.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/field_write.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/schema.hpp"
#include "framework/io/temporary_file.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

H5Handle make_group(hid_t file, const char* name) {
  const H5Handle creation = h5_own(H5Pcreate(H5P_GROUP_CREATE), "group creation");
  h5_check(H5Pset_obj_track_times(creation.get(), 0), "group times");
  return h5_own(H5Gcreate2(file, name, H5P_DEFAULT, creation.get(), H5P_DEFAULT), std::string("group ") + name);
}

void write_small_groups(hid_t file, const CheckpointMeta& m) {
  write_attribute(file, "format", std::string("isohalo"));
  write_attribute(file, "format_version", std::vector<std::int64_t>{kFormatMajor, kFormatMinor});
  H5Handle group;
  std::string open;
  detail::for_each_attribute([&](const detail::SchemaAttribute& a, auto member) {
    if (open != a.group) {
      open = a.group;
      group = make_group(file, a.group);
      if (open == "grid") write_attribute(group.get(), "dim", static_cast<std::int64_t>(m.shape.size()));
    }
    write_attribute(group.get(), a.name, m.*member);
  });
}

/// The canonical text as a dataset: attributes are limited to 64 KiB.
void write_config(hid_t file, const std::string& text, bool with_data) {
  const H5Handle group = make_group(file, "config");
  write_attribute(group.get(), "digest", hex_digest(bytes_digest(text.data(), text.size())));
  const hsize_t bytes = text.size();
  const H5Handle space = h5_own(H5Screate_simple(1, &bytes, nullptr), "config");
  const H5Handle set = make_dataset(group.get(), "text", H5T_STD_U8LE, space);
  if (with_data)
    h5_check(H5Dwrite(set.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "config text");
}

template <int D>
void write_statistics(hid_t group, const std::vector<FieldHandle<D>>& fields,
                      const std::vector<FieldStatistics>& statistics) {
  for (std::size_t k = 0; k < fields.size(); ++k) {
    const FieldHandle<D>& f = fields[k];
    const FieldStatistics& s = statistics[k];
    const H5Handle set = h5_own(H5Dopen2(group, f.name.c_str(), H5P_DEFAULT), "field " + f.name);
    write_attribute(set.get(), "units", f.units);
    write_attribute(set.get(), "role", f.role);
    write_attribute(set.get(), "digest", hex_digest(s.digest));
    write_attribute(set.get(), "min", s.min);
    write_attribute(set.get(), "max", s.max);
    write_attribute(set.get(), "nan_count", s.nan_count);
  }
}

template <int D>
std::int64_t field_bytes(const CartesianDomain<D>& domain, const std::vector<FieldHandle<D>>& fields) {
  std::int64_t bytes = 0;
  for (const auto& f : fields)
    bytes += domain.global().cells() *
             std::visit([](const auto& a) { return static_cast<std::int64_t>(sizeof(*a.data)); }, f.array);
  return bytes;
}

/// A small file is made in memory and written by rank 0: with more ranks than cores the collective calls of HDF5
/// and MPI-IO, which wait without giving up the core, cost a hundred times what the bytes do.
template <int D>
std::vector<FieldStatistics> write_alone(const fs::path& file, const CartesianDomain<D>& domain,
                                         const CheckpointMeta& meta, const std::vector<FieldHandle<D>>& fields) {
  const Communicator& comm = domain.comm();
  std::vector<std::string> cells;
  std::vector<FieldStatistics> statistics;
  for (const auto& f : fields) statistics.push_back(gather_field(domain, f, cells.emplace_back()));
  agreed(comm, [&] {
    if (comm.rank() != 0) return;
    const H5Handle image = detail::make_memory_file();
    write_small_groups(image.get(), meta);
    write_config(image.get(), meta.config, true);
    H5Handle group = make_group(image.get(), "fields");
    for (std::size_t k = 0; k < fields.size(); ++k)
      write_gathered(group.get(), domain.global(), fields[k], cells[k]);
    write_statistics(group.get(), fields, statistics);
    group.close();
    write_attribute(image.get(), "complete", std::int64_t{1});
    const std::string bytes = detail::bytes_of_memory_file(image);
    detail::fault_point("create");
    NewFile out(file);
    detail::fault_point("write");
    out.write(bytes);
    detail::fault_point("fsync");
    out.close(true);
    detail::publish_on_disk(out, file);
  });
  return statistics;
}

template <int D>
std::vector<FieldStatistics> write_together(const fs::path& file, std::int64_t most,
                                            const CartesianDomain<D>& domain, const CheckpointMeta& meta,
                                            const std::vector<FieldHandle<D>>& fields) {
  const Communicator& comm = domain.comm();
  std::vector<FieldStatistics> statistics;
  detail::TemporaryFile out(file, comm, most);
  H5Handle group;  // closed before the file
  agreed(comm, [&] {
    write_small_groups(out.get(), meta);
    write_config(out.get(), meta.config, comm.rank() == 0);
    group = make_group(out.get(), "fields");
    detail::fault_point("groups");
  });
  for (const auto& f : fields) statistics.push_back(write_field(group.get(), domain, f));
  agreed(comm, [&] {
    write_statistics(group.get(), fields, statistics);
    group.close();
    detail::fault_point("digests");
  });
  agreed(comm, [&] {
    write_attribute(out.get(), "complete", std::int64_t{1});
    detail::fault_point("complete");
  });
  out.close();
  out.publish();
  return statistics;
}

}  // namespace

template <int D>
std::vector<FieldStatistics> write_checkpoint(const fs::path& file, const CartesianDomain<D>& domain,
                                              const CheckpointMeta& meta,
                                              const std::vector<FieldHandle<D>>& fields) {
  const H5Quiet quiet;
  const std::int64_t data = field_bytes(domain, fields);
  // Groups and attributes, and up to 63 bytes before each of them.
  const std::int64_t most = data + static_cast<std::int64_t>(meta.config.size()) + (1 << 16) +
                            static_cast<std::int64_t>(fields.size()) * 4096;
  const bool alone = data <= detail::most_alone;
  agreed(domain.comm(), [&] {
    detail::fault_point("free_space");
    if (!alone || domain.rank() == 0) detail::check_room(file, most);
  });
  try {
    return alone ? write_alone(file, domain, meta, fields) : write_together(file, most, domain, meta, fields);
  } catch (const Error& e) {
    const std::string text = "cannot write " + file.string() + " (earlier checkpoints are kept): " + e.what();
    if (const auto* mpi = dynamic_cast<const MpiError*>(&e)) throw MpiError(mpi->mpi_code(), text);
    throw Error(e.code(), text);
  }
}

#define ISOHALO_INSTANTIATE(D)                               \
  template std::vector<FieldStatistics> write_checkpoint<D>( \
      const fs::path&, const CartesianDomain<D>&, const CheckpointMeta&, const std::vector<FieldHandle<D>>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
