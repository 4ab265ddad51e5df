#pragma once
/// Checkpoint files: one shared parallel HDF5 file that holds nothing that depends on ranks, host, time or path, so
/// that `cmp` proves core-count independence. The schema is in docs/checkpoints.md.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/io/digest.hpp"
#include "framework/io/field_handle.hpp"

namespace isohalo {

inline constexpr std::int64_t kFormatMajor = 1;
inline constexpr std::int64_t kFormatMinor = 1;  ///< of files with fields on faces, else 0

/// Everything in a checkpoint except the data.
struct CheckpointMeta {
  std::vector<std::int64_t> shape;
  std::vector<double> origin, spacing;
  std::vector<std::int64_t> periodic;       ///< 0 or 1 per dimension
  std::string boundary_low, boundary_high;  ///< canonical text of the rules
  std::int64_t step = 0;
  double time = 0, dt = 0;
  std::int64_t random_seed = 0, random_counter = 0;
  std::int64_t tree_version = 0;
  std::vector<std::int64_t> tile;
  std::string method = "tree";
  double change_sum = 0, residual = 0;
  std::int64_t residual_step = 0;
  std::string config;  ///< canonical text of what decides the numbers
};

/// What a file says of one of its fields.
struct StoredField {
  std::string name, units, role;
  std::string type;  ///< "float64", "float32", "uint8"
  std::vector<std::int64_t> shape;
  std::uint64_t digest = 0;
  double min = 0, max = 0;
  std::int64_t nan_count = 0;
  std::int64_t face = -1;  ///< the dimension on whose faces the values lie; -1: in cells

  std::int64_t cells() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
};

/// The roles that fields have.
inline bool is_role(const std::string& role) {
  return role == "state" || role == "auxiliary";
}

struct StoredCheckpoint {
  std::int64_t major = 0, minor = 0;
  CheckpointMeta meta;
  std::vector<StoredField> fields;

  /// The field of that name; null when there is none.
  const StoredField* find(const std::string& name) const {
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; });
    return found == fields.end() ? nullptr : &*found;
  }
};

namespace detail {
/// Bytes of field data up to which rank 0 writes the file alone. The same on all ranks; the bytes of the file do
/// not depend on it. Another number is for tests.
inline std::int64_t most_alone = std::int64_t{4} << 20;
}  // namespace detail

/// Writes `file` and returns the statistics of each field. On return the file is complete, on disk and has its
/// name; a reader never sees a partial file under it. Collective; errors are agreed, the previous file of that name
/// is intact and the temporary one removed. Throws RunError; or MpiError, not agreed, on a rank whose write fails
/// while others wait for it inside MPI.
template <int D>
std::vector<FieldStatistics> write_checkpoint(const std::filesystem::path& file, const CartesianDomain<D>& domain,
                                              const CheckpointMeta& meta,
                                              const std::vector<FieldHandle<D>>& fields);

/// Reads everything but the data, on the calling rank alone. Throws UsageError naming the file for one that is
/// absent, truncated, foreign, incomplete or of a newer major version.
StoredCheckpoint read_checkpoint_meta(const std::filesystem::path& file);

/// The same on all ranks, errors agreed. Collective.
StoredCheckpoint read_checkpoint_meta(const std::filesystem::path& file, const Communicator& comm);

/// Throws UsageError unless the file has a field of that name, of this type (of StoredField) and shape, in cells or
/// on these faces. Local.
void refuse_other_field(const std::filesystem::path& file, const StoredCheckpoint& stored, const std::string& name,
                        const std::string& type, const std::vector<std::int64_t>& shape, int face = -1);

/// Fills the owned cells of each field from the file, on any number of ranks, and checks shapes, types and digests.
/// Collective. Throws UsageError, agreed.
template <int D>
void read_checkpoint_fields(const std::filesystem::path& file, const StoredCheckpoint& stored,
                            const CartesianDomain<D>& domain, const std::vector<FieldHandle<D>>& fields);

/// The part `box` of a dataset of real or integer numbers, or of an enumeration as h5py's booleans are, converted
/// to double, in index order. Local. Throws UsageError naming file and dataset when it is missing, of another shape
/// (`expected` is said of the right one) or not numeric, or when reading it would read another file too
/// (`open_object`) or load a filter. Chunks and the filters built into HDF5 are fine.
template <int D>
std::vector<double> read_dataset(const std::filesystem::path& file, const std::string& dataset,
                                 const Index<D>& shape, const Box<D>& box,
                                 const std::string& expected = "the grid is");

}  // namespace isohalo
