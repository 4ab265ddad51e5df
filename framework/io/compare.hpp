#pragma once
/// Comparison of two checkpoints on any number of ranks: bit by bit, or within tolerances.

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/io/checkpoint.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// The `key = value` lines of a checkpoint's canonical configuration text.
std::map<std::string, std::string> config_lines(const std::string& text);

/// What a difference may be. A cell is within tolerance when its bits are equal, or when neither value is NaN and
/// any one of the given limits holds: |b - a| <= abs, |b - a| <= rel max(|a|, |b|), ULP distance <= ulp.
struct Tolerance {
  std::optional<double> abs, rel;
  std::optional<std::uint64_t> ulp;
  bool any() const { return abs || rel || ulp; }
};

struct CompareOptions {
  Tolerance tolerance;                      ///< of fields without one of their own; none: bit by bit
  std::map<std::string, Tolerance> fields;  ///< by name
  /// Read the data of large fields even when the stored digests agree.
  bool read_data = false;
  /// Names of metadata (`metadata_names`) that need not match: what differs of them is listed as ignored.
  std::set<std::string> ignore;
};

/// The metadata that `CompareOptions::ignore` can name.
const std::vector<std::string>& metadata_names();

/// Fields up to this size are always read; beyond it equal digests, extremes and NaN counts are taken as equal
/// data.
inline constexpr std::int64_t kAlwaysReadBytes = std::int64_t{64} << 20;

/// The verdict on one field that both files hold with the same shape and type. a is the first file's value of a
/// cell, b the second's, both as binary64; cells in which either is NaN are left out of all maxima and norms.
struct FieldDifference {
  std::string name, type;
  bool read = true;                  ///< false: equal digests of a large field, data not read
  std::int64_t cells = 0;            ///< compared
  std::int64_t cells_different = 0;  ///< whose bits differ: -0 and 0, or NaNs of other payloads, are different
  std::int64_t cells_beyond = 0;     ///< of them beyond the tolerance; all of them without one
  bool tolerant = false;             ///< there is a tolerance
  std::vector<std::int64_t> first;   ///< global index of the first cell that differs
  double value_a = 0, value_b = 0;   ///< its values
  std::uint64_t bits_a = 0, bits_b = 0;
  std::vector<std::int64_t> first_beyond;  ///< the first beyond the tolerance
  double max_abs = 0;                      ///< max |b - a|: the Linf norm
  std::vector<std::int64_t> largest;       ///< the first cell with it; empty when no two numbers differ
  double largest_a = 0, largest_b = 0;     ///< its values
  double max_rel = 0;                      ///< max |b - a| / max(|a|, |b|), 0 for two zeros
  std::uint64_t max_ulp = 0;               ///< max number of steps of the field's type from a to b; 0 from -0 to 0
  double l1 = 0, l2 = 0;                   ///< sum |b - a|; sqrt of sum (b - a)^2, each square rounded to binary64.
                                           ///< Both sums are exact and rounded once: no order and no ranks matter.
  std::int64_t nan_a = 0, nan_b = 0;       ///< NaNs of each file
  std::int64_t nan_one = 0;                ///< cells that are NaN in one file only
};

struct Comparison {
  std::vector<std::string> metadata;  ///< what must match and does not, one line each
  std::vector<std::string> ignored;   ///< what differs and need not match: how the runs were made
  std::vector<std::string> warnings;  ///< stored digests that do not match their data; no part of the verdict
  std::vector<std::string> hints;     ///< first differences on a rank boundary
  std::vector<FieldDifference> fields;
  bool tolerant = false;
  bool same() const;
};

/// Streams both files in bounded memory, each rank its share of the cells. Must match: grid, boundary rules, time,
/// step, reduction tree, configuration, field names, shapes, types, units, roles; bit by bit also the last
/// residual; all but what `ignore` names. What the run metadata say of how the runs were made (ranks, versions,
/// [run], [parallel], [output]) is ignored and listed. The result is the same on any number of ranks and on all of
/// them, but `ignored` and `hints` are filled on rank 0 alone. Collective. Throws UsageError, agreed, when a file
/// cannot be compared, a tolerance names no field or `ignore` no metadata.
Comparison compare_checkpoints(const std::filesystem::path& a, const std::filesystem::path& b,
                               const Communicator& comm, const CompareOptions& options = {});

}  // namespace isohalo
