#include "framework/mpi/whole_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "datatypes/error.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(int why) {
  throw RunError(reason(why));
}

[[noreturn]] void refuse_access(const char* verb, const fs::path& file, int why) {
  const std::string text = why == ELOOP ? "it is a symbolic link, which is not followed: remove it" : reason(why);
  throw RunError(std::string("cannot ") + verb + " " + file.string() + ": " + text);
}

[[noreturn]] void refuse_kind(const char* verb, const fs::path& file) {
  throw RunError(std::string("cannot ") + verb + " " + file.string() + ": it is no regular file: remove it");
}

/// Opens a regular file; no other kind and no link.
Descriptor open_regular(const fs::path& file, int flags, const char* verb, struct stat& status) {
  Descriptor opened(open(file.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!opened && (errno != ENOENT || (flags & O_CREAT) != 0)) refuse_access(verb, file, errno);
  if (opened && (fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode))) refuse_kind(verb, file);
  return opened;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string reason(int error) {
  return std::generic_category().message(error);
}

fs::path temporary_name(const fs::path& file) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) refuse(errno);
  std::string name = file.string() + ".";
  for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[number >> shift & 15];
  return name + ".tmp";
}

NewFile::NewFile(const fs::path& file)
    : file_(file),
      temporary_(temporary_name(file)),
      descriptor_(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  struct stat status {};
  if (!descriptor_ || fstat(descriptor_.get(), &status) != 0) refuse(errno);
  device_ = status.st_dev, inode_ = status.st_ino;
}

NewFile::~NewFile() {
  descriptor_.close();
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::write(std::string_view bytes) {
  if (!write_all(descriptor_.get(), bytes)) refuse(errno);
}

void NewFile::close(bool flush) {
  if (flush && fsync(descriptor_.get()) != 0) refuse(errno);
  if (!descriptor_.close()) refuse(errno);
}

void NewFile::publish() {
  struct stat there {};
  if (lstat(temporary_.c_str(), &there) != 0) refuse(errno);
  if (there.st_dev != device_ || there.st_ino != inode_)
    throw RunError("somebody has put another file in the place of " + temporary_.string());
  if (rename(temporary_.c_str(), file_.c_str()) != 0) refuse(errno);
  temporary_.clear();
}

void flush_to_disk(const fs::path& path) {
  // Somebody's fifo is no reason to wait.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file || fsync(file.get()) != 0) throw RunError("cannot flush " + path.string() + " to disk: " + reason());
}

void write_whole(const fs::path& file, std::string_view bytes) {
  struct stat there {};
  if (lstat(file.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    if (S_ISLNK(there.st_mode)) refuse_access("write", file, ELOOP);
    refuse_kind("write", file);
  }
  try {
    NewFile out(file);
    out.write(bytes);
    out.close(false);
    out.publish();
  } catch (const RunError& e) {
    throw RunError("cannot write " + file.string() + ": " + e.what());
  }
}

void append_whole(const fs::path& file, std::string_view bytes) {
  struct stat before {};
  Descriptor out = open_regular(file, O_WRONLY | O_APPEND | O_CREAT, "write", before);
  if (before.st_nlink > 1)
    return write_whole(file, read_whole(file).append(bytes));  // it has another name: a copy of it
  if (write_all(out.get(), bytes) && out.close()) return;
  const int why = errno;
  if (out) [[maybe_unused]]
    const int ignored = ftruncate(out.get(), before.st_size);
  refuse_access("write", file, why);
}

std::string read_whole(const fs::path& file) {
  struct stat status {};
  const Descriptor in = open_regular(file, O_RDONLY, "read", status);
  if (!in) return "";
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = read(in.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_access("read", file, errno);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace isohalo
