#pragma once
/// The JSON beside a checkpoint: everything that may differ between runs with the same bits.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/halo/exchange.hpp"
#include "framework/run/phases.hpp"

namespace isohalo {

struct RunMetadata {
  std::map<std::string, std::string> config;  ///< effective, as canonical text
  int ranks = 1;
  std::vector<std::int64_t> process_grid;
  std::vector<std::vector<std::int64_t>> cuts;  ///< per dimension, from 0 to the extent
  int halo_depth = 1;
  ExchangeChoice exchange;
  double wall_s = 0;
  std::vector<PhaseTime> phases;  ///< up to this checkpoint
  std::vector<std::string> command_line;
};

std::string run_metadata_json(const RunMetadata& facts);

}  // namespace isohalo
