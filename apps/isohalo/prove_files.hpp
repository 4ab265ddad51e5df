#pragma once
/// What two runs of one input have left, file by file.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// What tells the files and links of a directory from others that replace them, by name: number and time.
using Stamps = std::map<std::string, std::string>;
Stamps stamps_of(const std::filesystem::path& directory);

/// The files and links of a run's directory, by name, but for those that were there before it, its user's. Hidden
/// ones are the run's own business.
std::map<std::string, std::filesystem::path> files_left(const std::filesystem::path& directory,
                                                        const Stamps& former);

struct FileDifference {
  std::string what;     ///< such as "step_00000006.h5 differs"
  std::string details;  ///< lines that say where
};

/// How the second run's files differ from the first's: none may be missing or additional, all hold the same bytes,
/// links lead to the same place. Only what run metadata (*.json) say may differ. A file that cannot be read as what
/// it should be is a difference. `comm` has one rank. Throws RunError for a file that cannot be read at all.
std::vector<FileDifference> differing_files(const std::map<std::string, std::filesystem::path>& a,
                                            const std::map<std::string, std::filesystem::path>& b,
                                            const Communicator& comm);

}  // namespace isohalo
