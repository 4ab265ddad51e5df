#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <type_traits>

#include "datatypes/error.hpp"
#include "framework/halo/faces.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/io/gather.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/schema.hpp"
#include "framework/io/temporary_file.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

/// Packed and written at a time. Ranks on their own: what stays in the second-level cache between the two.
/// Together: much, since each collective call makes all of them wait.
constexpr std::int64_t kOwnBytes = std::int64_t{1} << 20, kSharedBytes = std::int64_t{32} << 20;

/// Cells of `owned` that follow one another in the file.
template <int D>
std::int64_t run_length(const Box<D>& global, const Box<D>& owned) {
  std::int64_t n = 1;
  for (int j = D - 1; j >= 0; --j) {
    n *= owned.extent(j);
    if (owned.extent(j) != global.extent(j)) break;
  }
  return n;
}

/// All cells of a field as a dataset's shape.
template <int D>
H5Handle whole_space(const Box<D>& global, const std::string& name) {
  hsize_t shape[D];
  for (int j = 0; j < D; ++j) shape[j] = static_cast<hsize_t>(global.extent(j));
  return h5_own(H5Screate_simple(D, shape, nullptr), "field " + name);
}

/// A part of `owned`, given as a piece of its shape.
template <int D>
Box<D> band_of(const Box<D>& owned, const Piece& piece) {
  Box<D> b;
  for (int j = 0; j < D; ++j) {
    const auto k = static_cast<std::size_t>(j);
    b.low[j] = owned.low[j] + static_cast<std::int64_t>(piece.start[k]);
    b.high[j] = b.low[j] + static_cast<std::int64_t>(piece.extents[k]);
  }
  return b;
}

/// Selects the band in the dataset's space, and as many elements of memory; without a band nothing of either.
template <int D>
H5Handle select_band(const H5Handle& space, const Box<D>& band) {
  const auto cells = static_cast<hsize_t>(band.cells());
  H5Handle memory = h5_own(H5Screate_simple(1, &cells, nullptr), "memory space");
  if (cells == 0) {
    h5_check(H5Sselect_none(space.get()), "file selection");
    h5_check(H5Sselect_none(memory.get()), "memory selection");
    return memory;
  }
  hsize_t start[D], count[D];
  for (int j = 0; j < D; ++j) {
    start[j] = static_cast<hsize_t>(band.low[j]);
    count[j] = static_cast<hsize_t>(band.extent(j));
  }
  h5_check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), "file selection");
  return memory;
}

/// Asks the system now and then to begin writing to disk what lies in its cache, so that the disk works while the
/// next cells are packed and the flush at the end finds little left. Only a hint: it cannot fail, and promises
/// nothing.
class EarlyWriteback {
 public:
  explicit EarlyWriteback(const H5Handle& set) {
    char name[4096];
    const ssize_t length = H5Fget_name(set.get(), name, sizeof name);
    if (length > 0 && length < static_cast<ssize_t>(sizeof name))
      file_ = Descriptor(open(name, O_RDONLY | O_CLOEXEC));
  }
  /// After `bytes` more have been written.
  void wrote(std::int64_t bytes) {
    waiting_ += bytes;
    if (!file_ || waiting_ < kAtATime) return;
    waiting_ = 0;
#if defined(SYNC_FILE_RANGE_WRITE)
    sync_file_range(file_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
#endif
  }

 private:
  static constexpr std::int64_t kAtATime = std::int64_t{16} << 20;
  Descriptor file_;
  std::int64_t waiting_ = 0;
};

/// Makes dataset `name` in the group `fields` of a file that all ranks have open, writes the owned cells of every
/// rank and returns the field's statistics, found while the cells are packed: the field is read once. Ranks whose
/// cells follow one another in the file write on their own, others by collective MPI-IO. Memory is bounded (32 MiB
/// per rank). Collective. Throws RunError, agreed.
template <class T, int D>
FieldStatistics write_cells(hid_t fields, const CartesianDomain<D>& domain, const std::string& name,
                            const ArrayRef<T, D>& a) {
  const Communicator& comm = domain.comm();
  const Box<D>& global = domain.global();
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  // Short runs of several ranks interleave: MPI-IO then gathers them into long ones.
  const std::int64_t run = run_length(global, a.owned);
  const bool together = comm.max(run < a.owned.cells() && run * kBytes < kOwnBytes ? 1 : 0) != 0;
  std::vector<std::int64_t> extents;
  for (int j = 0; j < D; ++j) extents.push_back(a.owned.extent(j));
  const Pieces bands(extents, (together ? kSharedBytes : kOwnBytes) / kBytes);

  H5Handle space, set, transfer, memory;
  std::vector<T> packed;
  std::optional<EarlyWriteback> writeback;
  StatisticsSum sum;
  agreed(comm, [&] {
    space = whole_space(global, name);
    set = make_dataset(fields, name, StoredType<T>::file(), space);
    transfer = h5_own(H5Pcreate(H5P_DATASET_XFER), "transfer");
    h5_check(H5Pset_dxpl_mpio(transfer.get(), together ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT),
             "kind of transfer");
    packed.resize(static_cast<std::size_t>(bands.piece(0).cells));
    writeback.emplace(set);
  });
  // Band k, or nothing beyond the last one: all that can fail on one rank alone.
  const auto pack = [&](std::int64_t k) {
    const Box<D> band = k < bands.count() ? band_of(a.owned, bands.piece(k)) : Box<D>{};
    sum.pack(global, a, band, packed.data());
    memory = select_band(space, band);
    detail::fault_point("data");
  };
  const auto write = [&] {
    h5_check(H5Dwrite(set.get(), StoredType<T>::memory(), memory.get(), space.get(), transfer.get(), packed.data()),
             "write of field data");
    writeback->wrote(H5Sget_select_npoints(memory.get()) * kBytes);
    detail::fault_point("data_written");
  };
  if (together) {
    const std::int64_t rounds = comm.max(bands.count());
    for (std::int64_t k = 0; k < rounds; ++k) {
      agreed(comm, [&] { pack(k); });
      detail::agreed_write(comm, write);
    }
  } else {
    agreed(comm, [&] {
      for (std::int64_t k = 0; k < bands.count(); ++k) pack(k), write();
    });
  }
  return sum.finish(comm, global.cells());
}

/// Brings the owned cells of every rank, by the field's domain, to rank 0, where `cells` gets the bytes of all in
/// index order, and returns the field's statistics. Collective. Throws RunError, agreed.
template <int D>
FieldStatistics gather_field(const CartesianDomain<D>& domain, const FieldHandle<D>& f, std::string& cells) {
  const Communicator& comm = domain.comm();
  const Box<D>& global = domain.global();
  StatisticsSum sum;
  std::visit(
      [&](const auto& a) {
        using T = std::remove_reference_t<decltype(*a.data)>;
        std::vector<T> mine;
        std::vector<Box<D>> boxes;
        agreed(comm, [&] {
          mine.resize(static_cast<std::size_t>(a.owned.cells()));
          sum.pack(global, a, a.owned, mine.data());
          for (int r = 0; r < comm.size(); ++r) boxes.push_back(domain.decomposition().box(r));
          if (comm.rank() == 0) cells.resize(static_cast<std::size_t>(global.cells()) * sizeof(T));
          detail::fault_point("data");
        });
        detail::gather_cells(comm, boxes, mine, global, reinterpret_cast<T*>(cells.data()));
      },
      f.array);
  return sum.finish(comm, global.cells());
}

/// Makes the dataset of a field in a file of this rank's own and writes all its cells.
template <int D>
void write_gathered(hid_t fields, const Box<D>& global, const FieldHandle<D>& f, const std::string& cells) {
  std::visit(
      [&](const auto& a) {
        using Type = StoredType<std::remove_reference_t<decltype(*a.data)>>;
        const H5Handle set = make_dataset(fields, f.name, Type::file(), whole_space(global, f.name));
        h5_check(H5Dwrite(set.get(), Type::memory(), H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()),
                 "write of field data");
      },
      f.array);
}

H5Handle make_group(hid_t file, const char* name) {
  const H5Handle creation = h5_own(H5Pcreate(H5P_GROUP_CREATE), "group creation");
  h5_check(H5Pset_obj_track_times(creation.get(), 0), "group times");
  return h5_own(H5Gcreate2(file, name, H5P_DEFAULT, creation.get(), H5P_DEFAULT), std::string("group ") + name);
}

/// What readers of the first version do not know makes a later one.
template <int D>
std::int64_t minor_version(const std::vector<FieldHandle<D>>& fields) {
  const bool any_face = std::any_of(fields.begin(), fields.end(), [](const auto& f) { return f.face >= 0; });
  return any_face ? kFormatMinor : 0;
}

void write_small_groups(hid_t file, const CheckpointMeta& m, std::int64_t minor) {
  write_attribute(file, "format", std::string("isohalo"));
  write_attribute(file, "format_version", std::vector<std::int64_t>{kFormatMajor, minor});
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
    if (f.face >= 0) write_attribute(set.get(), "face", static_cast<std::int64_t>(f.face));
  }
}

template <int D>
std::int64_t field_bytes(const CartesianDomain<D>& domain, const std::vector<FieldHandle<D>>& fields) {
  std::int64_t bytes = 0;
  for (const auto& f : fields)
    bytes += field_domain(domain, f.face).global().cells() *
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
  for (const auto& f : fields)
    statistics.push_back(gather_field(field_domain(domain, f.face), f, cells.emplace_back()));
  on_root(comm, [&] {
    const H5Handle image = detail::make_memory_file();
    write_small_groups(image.get(), meta, minor_version(fields));
    write_config(image.get(), meta.config, true);
    H5Handle group = make_group(image.get(), "fields");
    for (std::size_t k = 0; k < fields.size(); ++k)
      write_gathered(group.get(), field_domain(domain, fields[k].face).global(), fields[k], cells[k]);
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
    write_small_groups(out.get(), meta, minor_version(fields));
    write_config(out.get(), meta.config, comm.rank() == 0);
    group = make_group(out.get(), "fields");
    detail::fault_point("groups");
  });
  for (const auto& f : fields)
    statistics.push_back(std::visit(
        [&](const auto& a) { return write_cells(group.get(), field_domain(domain, f.face), f.name, a); }, f.array));
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
