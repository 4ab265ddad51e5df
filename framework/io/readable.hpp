#pragma once
/// Files that users name, looked at before a library opens them.

#include <filesystem>

namespace isohalo {

/// Throws UsageError with the file's name and the reason unless it is a regular file that can be read. Never waits,
/// for a pipe either. Local.
void refuse_unreadable(const std::filesystem::path& file);

}  // namespace isohalo
