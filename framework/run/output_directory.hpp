#pragma once
/// The directory of a run: names of files, what is there already, what to delete.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace isohalo {

class OutputDirectory {
 public:
  explicit OutputDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  /// step_00001000.h5 and its companions.
  std::filesystem::path checkpoint(std::int64_t step) const { return file(step, ".h5"); }
  std::filesystem::path file(std::int64_t step, const std::string& suffix) const;
  std::filesystem::path picture(const std::string& field, std::int64_t step) const;
  std::filesystem::path trail() const { return path_ / "digests.txt"; }
  /// Steps of the checkpoints that are there, newest first.
  std::vector<std::int64_t> steps() const;

  // To be called on one rank; they throw RunError or UsageError.
  /// Makes the directory and proves that files can be made in it.
  void make_writable() const;
  void remove_all_checkpoints() const;
  /// Removes the temporary files that an interrupted run left.
  void remove_leftovers() const;
  /// Points latest.h5 at a checkpoint, atomically.
  void set_latest(std::int64_t step) const;
  /// Deletes the oldest checkpoints of steps up to `newest` beyond `keep` (0: none). Later steps, left by an
  /// earlier run, neither count nor are touched, and `newest` itself stays.
  void delete_beyond(std::int64_t keep, std::int64_t newest) const;

 private:
  void remove(std::int64_t step) const;
  std::filesystem::path path_;
};

}  // namespace isohalo
