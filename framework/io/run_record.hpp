#pragma once
/// What the run metadata beside a checkpoint says of the run that wrote it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace isohalo {

struct RunRecord {
  std::map<std::string, std::string> facts;     ///< ranks, process grid, versions, host, as text
  std::map<std::string, std::string> config;    ///< the effective configuration, as canonical text
  std::vector<std::vector<std::int64_t>> cuts;  ///< per dimension, from 0 to the extent
};

/// Reads the run metadata of a checkpoint (links are followed), on the calling rank alone. Nothing when there is
/// none or it makes no sense: it is no part of the checkpoint.
std::optional<RunRecord> read_run_record(const std::filesystem::path& checkpoint);

/// The dimensions in which an index lies beside an inner cut, as words; empty when there is none.
std::string beside_cuts(const RunRecord& record, const std::vector<std::int64_t>& index);

}  // namespace isohalo
