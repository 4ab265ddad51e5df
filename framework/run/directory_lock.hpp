#pragma once
/// One run at a time in a directory.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "framework/mpi/whole_file.hpp"

namespace isohalo {

/// A lock on DIRECTORY/.isohalo_lock, which the kernel releases when the process ends, however it ends. The file
/// stays: it is the lock that counts. To be used on one rank.
class DirectoryLock {
 public:
  /// Of a directory that is there. Throws UsageError when somebody else has the lock, or when the file cannot be
  /// made. A file system that knows no locks is a warning on standard error.
  explicit DirectoryLock(const std::filesystem::path& directory);

  /// Throws RunError when the directory, or the file that is locked, has been moved, removed or replaced: then
  /// another run may have what is there now.
  void refuse_if_lost() const;

  /// Throws UsageError when somebody has the lock; makes and changes nothing.
  static void refuse_held(const std::filesystem::path& directory);

 private:
  std::filesystem::path directory_;
  Descriptor descriptor_;
  std::uint64_t device_ = 0, inode_ = 0;  ///< of the directory: a copy of it by hard links has the same lock file
};

}  // namespace isohalo
