#include "framework/run/directory_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <regex>
#include <thread>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

fs::path lock_file(const fs::path& directory) {
  return directory / ".isohalo_lock";
}

[[noreturn]] void refuse(const fs::path& directory, const std::string& what) {
  throw UsageError("output.directory " + directory.string() + " " + what);
}

/// None, with errno, when it cannot be opened. Throws UsageError when it is a link or a device.
Descriptor open_lock(const fs::path& directory, int flags) {
  Descriptor file(open(lock_file(directory).c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (!file && errno == ELOOP)
    refuse(directory, "has a symbolic link .isohalo_lock, which is not followed: remove it");
  struct stat status {};
  if (file && (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)))
    refuse(directory, "has an .isohalo_lock that is no regular file: remove it");
  return file;
}

/// "process 17 on host", from what the holder wrote into the file; anything else is not repeated.
std::string holder(int descriptor) {
  static const std::regex form("([0-9]{1,9}) ([-._A-Za-z0-9]+)\\n");
  char text[300] = "";
  std::cmatch found;
  if (pread(descriptor, text, sizeof text - 1, 0) <= 0 ||
      !std::regex_search(text, found, form, std::regex_constants::match_continuous))
    return "another run";
  const std::string process = found[1], host = found[2];
  if (host == host_name() && kill(std::stoi(process), 0) != 0 && errno == ESRCH)
    return "another run";  // who holds it now could not write
  return "process " + process + " on " + host;
}

[[noreturn]] void refuse_unopened(const fs::path& directory, int why) {
  refuse(directory, "cannot be used: its .isohalo_lock cannot be opened (" + reason(why) + "): choose another");
}

[[noreturn]] void refuse_in_use(const fs::path& directory, int descriptor) {
  refuse(directory,
         "is in use by " + holder(descriptor) + ": wait until that run has ended, or choose another directory");
}

void write_holder(int descriptor) {
  const std::string text = fmt::format("{} {}\n", getpid(), host_name());
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || status.st_nlink != 1) return;  // also a file of another name
  // Only for the message: a full disk does not matter.
  if (ftruncate(descriptor, 0) == 0) [[maybe_unused]]
    const auto written = pwrite(descriptor, text.data(), text.size(), 0);
}

/// Somebody who asks whether the lock is held has it for a moment, so one refusal is not enough.
bool take(int descriptor) {
  for (int k = 0;; ++k) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || k == 10) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

bool cannot_lock(int why) {
  return why == ENOLCK || why == EOPNOTSUPP || why == ENOSYS || why == EBADF || why == EINVAL;
}

}  // namespace

DirectoryLock::DirectoryLock(const fs::path& directory)
    : directory_(directory), descriptor_(open_lock(directory, O_RDWR | O_CREAT)) {
  if (!descriptor_ && errno == EACCES) descriptor_ = open_lock(directory, O_RDONLY);  // another user made it
  if (!descriptor_) refuse_unopened(directory, errno);
  if (!take(descriptor_.get())) {
    const int why = errno;
    if (why == EWOULDBLOCK) refuse_in_use(directory, descriptor_.get());
    if (!cannot_lock(why)) refuse(directory, "cannot be locked: " + reason(why));
    fmt::print(stderr,
               "isohalo: warning: output.directory {} cannot be locked ({}): see to it that no other run uses it\n",
               printable(directory.string()), reason(why));
  }
  write_holder(descriptor_.get());
  struct stat status {};
  if (stat(directory.c_str(), &status) == 0) device_ = status.st_dev, inode_ = status.st_ino;
}

void DirectoryLock::refuse_if_lost() const {
  struct stat ours {
  }, there{}, directory{};
  if (stat(directory_.c_str(), &directory) == 0 && directory.st_dev == device_ && directory.st_ino == inode_ &&
      fstat(descriptor_.get(), &ours) == 0 && lstat(lock_file(directory_).c_str(), &there) == 0 &&
      ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
    return;
  throw RunError("output.directory " + directory_.string() +
                 " was moved, removed or replaced while this run used it: nothing more is written there");
}

void DirectoryLock::refuse_held(const fs::path& directory) {
  const Descriptor file = open_lock(directory, O_RDONLY);
  if (!file && errno != ENOENT) refuse_unopened(directory, errno);
  if (file && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    refuse_in_use(directory, file.get());
}

}  // namespace isohalo
