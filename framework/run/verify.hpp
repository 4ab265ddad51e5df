#pragma once
/// Is a checkpoint what it says it is?

#include <filesystem>
#include <string>
#include <vector>

#include "framework/io/checkpoint.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

struct Verification {
  StoredCheckpoint stored;
  std::vector<FieldStatistics> found;  ///< of each stored field, from its data
  std::vector<std::string> problems;   ///< one line each; none: the file is good
};

/// What of the metadata contradicts itself, one line each: time = step dt, residual = sqrt(S / cells), steps,
/// words, tile, spacing, boundary rules and seed, against each other and against the configuration. Local.
std::vector<std::string> meta_problems(const CheckpointMeta& meta);

/// Reads all data in bounded memory, each rank its share, and checks: digest, extremes and NaN count of every
/// field; the metadata (`meta_problems`); that there are no objects and attributes that the schema does not know,
/// and no bytes that are part of nothing (`stray_bytes`). The result is the same on all ranks. Collective. Throws
/// UsageError, agreed, for a file that cannot be read as a checkpoint at all.
Verification verify_checkpoint(const std::filesystem::path& file, const Communicator& comm);

}  // namespace isohalo
