#pragma once
/// Files that users name, looked at before a library opens them.

#include <filesystem>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Throws UsageError with the file's name and the reason unless it is a regular file that can be read. Never waits,
/// for a pipe either. Local.
void refuse_unreadable(const std::filesystem::path& file);

/// The file that a symbolic link of this name leads to now, for all ranks and for as long as it is read: latest.h5
/// may move on meanwhile. Other names stay as they are. Collective.
std::filesystem::path pinned(const std::filesystem::path& file, const Communicator& comm);

}  // namespace isohalo
