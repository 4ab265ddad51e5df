#include "framework/run/output_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <regex>

#include "datatypes/error.hpp"
#include "framework/io/picture.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

// Names as a run writes them; a step has eight digits, or more where it needs them.
const std::string kStep = "_([0-9]{8}|[1-9][0-9]{8,17})";
const std::string kCheckpoint = "step" + kStep + "\\.(h5|json|xmf)", kPicture = "(.+)" + kStep + "\\.png";
const std::string kTemporary =
    "(latest\\.h5|digests\\.txt|\\.isohalo_probe|" + kCheckpoint + "|" + kPicture + ")\\.[0-9a-f]{16}\\.tmp";

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  detail::fault_point("list");
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    names.push_back(entry.path().filename().string());
  return names;
}

/// Files and links, never directories.
void remove_file(const fs::path& file) {
  unlink(file.c_str());
}

[[noreturn]] void refuse_to_make(const fs::path& path, const std::string& why) {
  throw UsageError("output.directory " + path.string() + " cannot be made: " + why);
}

[[noreturn]] void refuse_to_write(const fs::path& path, const std::string& why) {
  throw UsageError("output.directory " + path.string() + " cannot be written to (" + why + "): choose another");
}

/// Whether nobody may make files of their own there, though root is told that he may.
bool shows_the_kernel(const fs::path& path) {
  struct statfs found {};
  if (statfs(path.c_str(), &found) != 0) return false;
  const auto type = static_cast<std::uint32_t>(found.f_type);
  for (const std::uint32_t known : {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                                    DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC, DEVPTS_SUPER_MAGIC})
    if (type == known) return true;
  return false;
}

/// Asks the system whether the directory, or what is there of it, may be written to.
void refuse_unwritable(const fs::path& path) {
  fs::path at = path;
  struct stat status {};
  while (stat(at.c_str(), &status) != 0) {
    const int why = errno;
    if (why != ENOENT || lstat(at.c_str(), &status) == 0)
      refuse_to_make(path, why == ENOENT ? "a symbolic link that leads nowhere has that name" : reason(why));
    const fs::path above = at.has_relative_path() ? at.parent_path() : fs::path();
    at = above.empty() || above == at ? fs::path(".") : above;
  }
  if (!S_ISDIR(status.st_mode)) refuse_to_make(path, "a file has that name");
  if (shows_the_kernel(at)) {
    const std::string why = "shows the kernel's state and takes no files";
    if (at == path) refuse_to_write(path, "it " + why);
    refuse_to_make(path, at.string() + " " + why);
  }
  const int wanted = at == path ? R_OK | W_OK | X_OK : W_OK | X_OK;
  if (faccessat(AT_FDCWD, at.c_str(), wanted, AT_EACCESS) == 0) return;
  if (at == path) refuse_to_write(path, reason());
  refuse_to_make(path, reason());
}

}  // namespace

fs::path OutputDirectory::file(std::int64_t step, const std::string& suffix) const {
  return path_ / fmt::format("step_{:08d}{}", step, suffix);
}

fs::path OutputDirectory::picture(const std::string& field, std::int64_t step) const {
  return path_ / fmt::format("{}_{:08d}.png", field, step);
}

std::vector<std::int64_t> OutputDirectory::steps() const {
  auto found = named_steps();
  std::error_code ignored;
  std::erase_if(found, [&](std::int64_t s) { return !fs::is_regular_file(checkpoint(s), ignored); });
  return found;
}

std::vector<std::int64_t> OutputDirectory::named_steps() const {
  std::vector<std::int64_t> found;
  for (const auto& name : names_in(path_)) {
    std::int64_t step = -1;
    if (name.starts_with("step_")) std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (step >= 0 && path_ / name == checkpoint(step)) found.push_back(step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

/// A file of a user may have such a name, of a date for example, but not the beginning as well.
bool OutputDirectory::is_picture(const std::string& name) const {
  static const std::regex picture(kPicture);
  return std::regex_match(name, picture) && is_our_picture(path_ / name);
}

void OutputDirectory::refuse_outputs(bool may_hold_outputs) const {
  if (may_hold_outputs) return;
  const auto refuse = [&](const std::string& what, const std::string& ways) {
    throw UsageError("output.directory " + path_.string() + " already holds " + what + ": " + ways +
                     "replace them with --overwrite, or choose another directory");
  };
  if (!steps().empty()) refuse("checkpoints", "continue with --restart auto, ");
  std::error_code none;
  if (fs::exists(digest_log(), none) && fs::file_size(digest_log(), none) > 0) refuse("digests (digests.txt)", "");
  for (const auto& name : names_in(path_))
    if (is_picture(name)) refuse("pictures (" + name + ")", "");
}

void OutputDirectory::check_usable(bool may_hold_outputs) const {
  refuse_unwritable(path_);
  struct stat log {};
  if (lstat(digest_log().c_str(), &log) == 0 && !S_ISREG(log.st_mode))
    refuse_to_write(path_, S_ISLNK(log.st_mode)
                               ? "its digests.txt is a symbolic link, which is not followed: remove it"
                               : "its digests.txt is no regular file");
  std::error_code ignored;
  if (fs::is_directory(fs::symlink_status(path_ / "latest.h5", ignored)))
    refuse_to_write(path_, "its latest.h5 is a directory: remove it");
  DirectoryLock::refuse_held(path_);
  refuse_outputs(may_hold_outputs);
}

void OutputDirectory::claim(bool may_hold_outputs) {
  check_usable(may_hold_outputs);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) refuse_to_make(path_, error.message());
  lock_ = std::make_unique<DirectoryLock>(path_);
  refuse_outputs(may_hold_outputs);  // another run may have ended since
  try {
    NewFile(path_ / ".isohalo_probe").write("x");
  } catch (const Error& e) {
    refuse_to_write(path_, e.what());
  }
}

void OutputDirectory::remove(std::int64_t step) const {
  // The checkpoint last: as long as it is there, what belongs to it is found.
  for (const char* suffix : {".json", ".xmf", ".h5"}) {
    remove_file(file(step, suffix));
    detail::fault_point("deleted");
  }
}

void OutputDirectory::remove_leftovers() const {
  const std::regex temporary(kTemporary);
  for (const auto& name : names_in(path_))
    if (std::regex_match(name, temporary)) remove_file(path_ / name);
}

void OutputDirectory::remove_outputs() const {
  const auto there = steps();  // go last
  const std::regex checkpoint(kCheckpoint);
  std::error_code ignored;
  std::smatch parts;
  for (const auto& name : names_in(path_)) {
    bool ours = name == "latest.h5" || name == "digests.txt";
    if (std::regex_match(name, parts, checkpoint))
      ours = parts[2] != "h5" || !fs::is_regular_file(path_ / name, ignored);
    if (ours || is_picture(name)) remove_file(path_ / name);
  }
  for (const std::int64_t s : there) remove(s);
}

void OutputDirectory::set_latest(const std::set<std::int64_t>& unusable) const {
  auto there = steps();
  std::erase_if(there, [&](std::int64_t s) { return unusable.contains(s); });
  if (there.empty()) return;
  const fs::path link = path_ / "latest.h5", fresh = temporary_name(link);
  std::error_code error;
  detail::fault_point("latest");
  fs::create_symlink(checkpoint(there.front()).filename(), fresh, error);
  detail::fault_point("latest_rename");
  if (!error) fs::rename(fresh, link, error);
  if (!error) return;
  remove_file(fresh);
  throw RunError("cannot point " + link.string() + " at the new checkpoint: " + error.message());
}

void OutputDirectory::delete_beyond(std::int64_t keep, std::int64_t newest) const {
  if (keep <= 0) return;
  std::int64_t kept = 0;
  for (const std::int64_t s : steps())
    if (s <= newest && ++kept > keep) remove(s);
}

}  // namespace isohalo
