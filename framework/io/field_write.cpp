#include "framework/io/field_write.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "framework/io/field_reader.hpp"
#include "framework/io/gather.hpp"
#include "framework/io/temporary_file.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

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
    if (length > 0 && length < static_cast<ssize_t>(sizeof name)) file_ = open(name, O_RDONLY | O_CLOEXEC);
  }
  EarlyWriteback(const EarlyWriteback&) = delete;
  EarlyWriteback& operator=(const EarlyWriteback&) = delete;
  ~EarlyWriteback() {
    if (file_ >= 0) close(file_);
  }
  /// After `bytes` more have been written.
  void wrote(std::int64_t bytes) {
    waiting_ += bytes;
    if (file_ < 0 || waiting_ < kAtATime) return;
    waiting_ = 0;
#if defined(SYNC_FILE_RANGE_WRITE)
    sync_file_range(file_, 0, 0, SYNC_FILE_RANGE_WRITE);
#endif
  }

 private:
  static constexpr std::int64_t kAtATime = std::int64_t{16} << 20;
  int file_ = -1;
  std::int64_t waiting_ = 0;
};

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

}  // namespace

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

template <int D>
FieldStatistics write_field(hid_t fields, const CartesianDomain<D>& domain, const FieldHandle<D>& f) {
  return std::visit([&](const auto& a) { return write_cells(fields, domain, f.name, a); }, f.array);
}

#define ISOHALO_INSTANTIATE(D)                                                                              \
  template FieldStatistics write_field<D>(hid_t, const CartesianDomain<D>&, const FieldHandle<D>&);         \
  template FieldStatistics gather_field<D>(const CartesianDomain<D>&, const FieldHandle<D>&, std::string&); \
  template void write_gathered<D>(hid_t, const Box<D>&, const FieldHandle<D>&, const std::string&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
