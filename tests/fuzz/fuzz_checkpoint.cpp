/// Checkpoint files: everything that reads one. Inputs are changed in place, mostly, and their checksums made right
/// again, because a wrong one ends every further check.

#include <mpi.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "datatypes/mix.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/compare.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/io/file_structure.hpp"
#include "framework/run/verify.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace isohalo::fuzz {

namespace {

constexpr std::int64_t kMostCells = 100000;

/// A restart: fills fields of the file's own shape.
template <class T, int D>
void restart(const std::filesystem::path& file, const StoredCheckpoint& stored) {
  Index<D> shape;
  std::copy(stored.meta.shape.begin(), stored.meta.shape.end(), shape.begin());
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape);
  for (const auto& f : stored.fields) {
    if (f.type != StoredType<T>::name) continue;
    std::vector<T> memory(static_cast<std::size_t>(domain.owned().cells()));
    const ArrayRef<T, D> field = adopt(memory.data(), domain.owned(), 0);
    read_checkpoint_fields<D>(file, stored, domain, {FieldHandle<D>{f.name, f.units, f.role, field}});
  }
}

template <int D>
void restart_dimensions(const std::filesystem::path& file, const StoredCheckpoint& stored) {
  double cells = 1;
  for (const std::int64_t n : stored.meta.shape) cells *= static_cast<double>(n);
  if (cells > kMostCells) return;
  accepted([&] { restart<double, D>(file, stored); });
  accepted([&] { restart<float, D>(file, stored); });
  accepted([&] { restart<std::uint8_t, D>(file, stored); });
}

/// Makes all checksums right that can be found.
void repair(std::uint8_t* data, std::size_t size) {
  const auto file = scratch_file("repaired.h5", {reinterpret_cast<const char*>(data), size});
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  for (;;) {
    try {
      check_file_structure(file);
      return;
    } catch (const UsageError& e) {
      std::size_t place = 0;
      std::uint32_t sum = 0;
      const char* const said = std::strstr(e.what(), "at byte ");
      if (!said ||
          std::sscanf(said, "at byte %zu: a checksum does not match: it should be %" SCNu32, &place, &sum) != 2)
        return;  // those before the place that it refuses are right
      for (std::size_t k = 0; k < 4; ++k) data[place + k] = static_cast<std::uint8_t>(sum >> 8 * k);
      bytes.seekp(static_cast<std::streamoff>(place));
      bytes.write(reinterpret_cast<const char*>(data) + place, 4).flush();
    }
  }
}

}  // namespace

namespace {

void read_in_every_way(std::string_view input) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  const auto file = scratch_file("step.h5", input);
  StoredCheckpoint stored;
  if (!accepted([&] { stored = read_checkpoint_meta(file, comm); })) return;
  const H5Quiet quiet;
  accepted([&] { verify_checkpoint(file, comm); });
  accepted([&] {
    CompareOptions options;
    options.read_data = true;
    require(compare_checkpoints(file, file, comm, options).same(), "a checkpoint differs from itself");
  });
  accepted([&] {
    for (const auto& f : stored.fields) FieldReader(file, f.name).offset();
  });
  switch (stored.meta.shape.size()) {
    case 1:
      return restart_dimensions<1>(file, stored);
    case 2:
      return restart_dimensions<2>(file, stored);
    case 3:
      return restart_dimensions<3>(file, stored);
    default:
      return restart_dimensions<4>(file, stored);
  }
}

}  // namespace

void fuzz_one(std::string_view input) {
  read_in_every_way(input);
  require(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL) == 0, "HDF5 objects stay open");
}

}  // namespace isohalo::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  std::uint64_t state = seed;
  const auto below = [&](std::uint64_t n) { return isohalo::mix64(state += isohalo::kGolden) % n; };
  if (size < 8 || below(8) == 0) {
    size = LLVMFuzzerMutate(data, size, most);
  } else {
    static constexpr std::uint64_t kTelling[] = {0,          1,          2,          0x7f,       0xff,
                                                 0xffff,     0x7fffffff, 0xffffffff, 1ull << 53, ~0ull,
                                                 ~0ull >> 1, 0x100,      0x10000,    1ull << 40, 8};
    for (std::uint64_t n = 1 + below(3); n > 0; --n) {
      const std::size_t bytes = std::size_t{1} << below(4), at = below(size - bytes + 1);
      std::uint64_t value = 0;
      std::memcpy(&value, data + at, bytes);
      switch (below(4)) {
        case 0:
          value ^= std::uint64_t{1} << below(8 * bytes);
          break;
        case 1:
          value += below(33) - 16;
          break;
        case 2:
          value = kTelling[below(std::size(kTelling))];
          break;
        default: {  // bytes of another place: an address, a length, a message
          const std::size_t from = below(size - bytes + 1);
          std::memcpy(&value, data + from, bytes);
        }
      }
      std::memcpy(data + at, &value, bytes);
    }
  }
  if (below(16) != 0) isohalo::fuzz::repair(data, size);
  return size;
}
