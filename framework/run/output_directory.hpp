#pragma once
/// The directory of a run: names of files, what is there already, what to delete.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/run/directory_lock.hpp"

namespace isohalo {

/// One run at a time, which holds a lock (DirectoryLock), and one line of history: docs/checkpoints.md, "The
/// directory".
class OutputDirectory {
 public:
  explicit OutputDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  /// step_00001000.h5 and its companions.
  std::filesystem::path checkpoint(std::int64_t step) const { return file(step, ".h5"); }
  std::filesystem::path file(std::int64_t step, const std::string& suffix) const;
  std::filesystem::path picture(const std::string& field, std::int64_t step) const;
  std::filesystem::path digest_log() const { return path_ / "digests.txt"; }
  /// Steps of the checkpoints that are there, newest first: of regular files, or links to such.
  std::vector<std::int64_t> steps() const;
  /// The same of whatever has such a name: directories, devices and links that lead nowhere, too.
  std::vector<std::int64_t> named_steps() const;

  // To be called on one rank; they throw RunError or UsageError.
  /// Throws UsageError for whatever a run would refuse the directory for: it cannot be made or written to, it is in
  /// use, or it holds outputs of a run and may not. Makes and changes nothing.
  void check_usable(bool may_hold_outputs) const;
  /// The same; then makes the directory, locks it as long as this object lives, and proves that files can be made
  /// in it.
  void claim(bool may_hold_outputs);
  /// Removes everything that runs write: checkpoints and their companions, the digest log, latest.h5, and pictures.
  /// All other files stay.
  void remove_outputs() const;
  /// Removes the temporary files that an interrupted run left.
  void remove_leftovers() const;
  /// Throws RunError when the directory is not the one that was claimed any more.
  void refuse_if_lost() const { lock_->refuse_if_lost(); }
  /// Points latest.h5 at the checkpoint of the highest step that is none of `unusable`, atomically.
  void set_latest(const std::set<std::int64_t>& unusable) const;
  /// Deletes the oldest checkpoints of steps up to `newest` beyond `keep` (0: none). Later steps, left by an
  /// earlier run, neither count nor are touched, and `newest` itself stays.
  void delete_beyond(std::int64_t keep, std::int64_t newest) const;

 private:
  void refuse_outputs(bool may_hold_outputs) const;
  bool is_picture(const std::string& name) const;
  void remove(std::int64_t step) const;
  std::filesystem::path path_;
  std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace isohalo
