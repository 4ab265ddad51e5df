#include "framework/run/output_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "datatypes/error.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDigits = "0123456789";

/// STEM_N.SUFFIX, N as a run writes it: eight digits, more for a step that needs more.
struct OwnName {
  std::string stem;
  std::int64_t step = 0;
  std::string suffix;
  bool of_checkpoint() const {
    return stem == "step" && (suffix == ".h5" || suffix == ".json" || suffix == ".xmf");
  }
  bool of_picture() const { return !stem.empty() && suffix == ".png"; }
};

std::optional<OwnName> own_name(const std::string& name) {
  const auto line = name.rfind('_');
  if (line == std::string::npos) return std::nullopt;
  const auto end = name.find_first_not_of(kDigits, line + 1);
  if (end == std::string::npos) return std::nullopt;
  OwnName own{name.substr(0, line), 0, name.substr(end)};
  const auto [at, error] = std::from_chars(name.data() + line + 1, name.data() + end, own.step);
  if (error != std::errc{} || name.substr(line + 1, end - line - 1) != fmt::format("{:08d}", own.step))
    return std::nullopt;
  return own;
}

/// Is it a name of ours, of a file that is not complete: NAME.<16 hex digits>.tmp?
bool is_temporary(const std::string& name) {
  constexpr std::size_t random = 16, behind = random + 5;
  if (!name.ends_with(".tmp") || name.size() <= behind || name[name.size() - behind] != '.') return false;
  const auto digits = name.substr(name.size() - behind + 1, random);
  if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  const std::string whole = name.substr(0, name.size() - behind);
  if (whole == "latest.h5" || whole == "digests.txt" || whole == ".isohalo_probe") return true;
  const auto own = own_name(whole);
  return own && (own->of_checkpoint() || own->of_picture());
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    names.push_back(entry.path().filename().string());
  return names;
}

/// Files and links, never directories.
void remove_file(const fs::path& file) {
  unlink(file.c_str());
}

[[noreturn]] void refuse_to_make(const fs::path& path, const std::string& reason) {
  throw UsageError("output.directory " + path.string() + " cannot be made: " + reason);
}

[[noreturn]] void refuse_to_write(const fs::path& path, const std::string& reason) {
  throw UsageError("output.directory " + path.string() + " cannot be written to (" + reason + "): choose another");
}

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

/// Asks the system whether the directory, or what is there of it, may be written to.
void refuse_unwritable(const fs::path& path) {
  fs::path at = path;
  struct stat status {};
  while (stat(at.c_str(), &status) != 0) {
    const int why = errno;
    if (why != ENOENT || lstat(at.c_str(), &status) == 0)
      refuse_to_make(path, why == ENOENT ? "a symbolic link that leads nowhere has that name" : reason_of(why));
    const fs::path above = at.has_relative_path() ? at.parent_path() : fs::path();
    at = above.empty() || above == at ? fs::path(".") : above;
  }
  if (!S_ISDIR(status.st_mode)) refuse_to_make(path, "a file has that name");
  const int wanted = at == path ? R_OK | W_OK | X_OK : W_OK | X_OK;
  if (faccessat(AT_FDCWD, at.c_str(), wanted, AT_EACCESS) == 0) return;
  if (at == path) refuse_to_write(path, reason_of(errno));
  refuse_to_make(path, reason_of(errno));
}

}  // namespace

fs::path OutputDirectory::file(std::int64_t step, const std::string& suffix) const {
  return path_ / fmt::format("step_{:08d}{}", step, suffix);
}

fs::path OutputDirectory::picture(const std::string& field, std::int64_t step) const {
  return path_ / fmt::format("{}_{:08d}.png", field, step);
}

std::vector<std::int64_t> OutputDirectory::steps() const {
  std::vector<std::int64_t> found;
  std::error_code ignored;
  for (const auto& name : names_in(path_))
    if (const auto own = own_name(name);
        own && own->stem == "step" && own->suffix == ".h5" && fs::is_regular_file(path_ / name, ignored))
      found.push_back(own->step);
  std::sort(found.rbegin(), found.rend());
  return found;
}

void OutputDirectory::refuse_checkpoints(bool may_hold_checkpoints) const {
  if (!may_hold_checkpoints && !steps().empty())
    throw UsageError("output.directory " + path_.string() +
                     " already holds checkpoints: continue with --restart auto, replace them with --overwrite, or "
                     "choose another directory");
}

void OutputDirectory::check_usable(bool may_hold_checkpoints) const {
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
  refuse_checkpoints(may_hold_checkpoints);
}

void OutputDirectory::claim(bool may_hold_checkpoints) {
  check_usable(may_hold_checkpoints);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) refuse_to_make(path_, error.message());
  lock_ = std::make_unique<DirectoryLock>(path_);
  refuse_checkpoints(may_hold_checkpoints);  // another run may have ended since
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
  for (const auto& name : names_in(path_))
    if (is_temporary(name)) remove_file(path_ / name);
}

void OutputDirectory::remove_outputs(const std::set<std::string>& fields) const {
  const auto there = steps();
  for (const auto& name : names_in(path_)) {
    const auto own = own_name(name);
    const bool last =
        own && own->suffix == ".h5" && std::find(there.begin(), there.end(), own->step) != there.end();
    const bool ours = own && ((own->of_checkpoint() && !last) || (own->of_picture() && fields.contains(own->stem)));
    if (ours || name == "latest.h5" || name == "digests.txt") remove_file(path_ / name);
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
