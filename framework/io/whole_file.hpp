#pragma once
/// Small files that have their name only when they are complete. On one rank; errors name the file and the reason.

#include <filesystem>
#include <string_view>

namespace isohalo {

/// Writes `bytes` to FILE.tmp and renames it. Throws RunError; then the former file of that name is as it was and
/// the temporary one is gone. Not flushed to disk.
void write_whole(const std::filesystem::path& file, std::string_view bytes);

/// Appends to the file, which is made if there is none. Throws RunError; then the file has its former length.
void append_whole(const std::filesystem::path& file, std::string_view bytes);

}  // namespace isohalo
