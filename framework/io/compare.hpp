#pragma once
/// Comparison of two checkpoints, bit by bit, on any number of ranks.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/io/checkpoint.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// The `key = value` lines of a checkpoint's canonical configuration text.
std::map<std::string, std::string> config_lines(const std::string& text);

/// The verdict on one field that both files hold with the same shape and type.
struct FieldDifference {
  std::string name;
  std::int64_t cells = 0;            ///< compared
  std::int64_t cells_different = 0;  ///< whose bits differ
  std::vector<std::int64_t> first;   ///< global index of the first such cell
  double value_a = 0, value_b = 0;   ///< its values
  std::uint64_t bits_a = 0, bits_b = 0;
};

struct Comparison {
  std::vector<std::string> metadata;  ///< what must match and does not, one line each
  std::vector<std::string> warnings;  ///< stored digests that do not match their data; no part of the verdict
  std::vector<FieldDifference> fields;
  bool same() const;
};

/// Streams both files in bounded memory, each rank its share of the cells. Metadata that decides the numbers
/// (grid, boundary rules, time, step, reduction, configuration, field names, shapes, types) must match. The result
/// is the same on all ranks. Collective. Throws UsageError, agreed, when a file cannot be compared.
Comparison compare_checkpoints(const std::filesystem::path& a, const std::filesystem::path& b,
                               const Communicator& comm);

}  // namespace isohalo
