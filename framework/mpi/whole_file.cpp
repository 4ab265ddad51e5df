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
  throw RunError(std::generic_category().message(why));
}

[[noreturn]] void refuse_access(const char* verb, const fs::path& file, int why) {
  const std::string reason = why == ELOOP ? "it is a symbolic link, which is not followed: remove it"
                                          : std::generic_category().message(why);
  throw RunError(std::string("cannot ") + verb + " " + file.string() + ": " + reason);
}

[[noreturn]] void refuse_kind(const char* verb, const fs::path& file) {
  throw RunError(std::string("cannot ") + verb + " " + file.string() + ": it is no regular file: remove it");
}

/// An open regular file; no other kind and no link.
class OpenFile {
 public:
  OpenFile(const fs::path& file, int flags, const char* verb)
      : descriptor_(open(file.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) {
      if (errno == ENOENT && (flags & O_CREAT) == 0) return;
      refuse_access(verb, file, errno);
    }
    if (fstat(descriptor_, &status_) == 0 && S_ISREG(status_.st_mode)) return;
    ::close(descriptor_);
    refuse_kind(verb, file);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(); }
  int get() const { return descriptor_; }
  off_t size() const { return status_.st_size; }
  nlink_t links() const { return status_.st_nlink; }
  bool close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return descriptor < 0 || ::close(descriptor) == 0;
  }

 private:
  int descriptor_;
  struct stat status_ {};
};

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
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) refuse(errno);
  device_ = status.st_dev, inode_ = status.st_ino;
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::write(std::string_view bytes) {
  if (!write_all(descriptor_, bytes)) refuse(errno);
}

void NewFile::close(bool flush) {
  if (flush && fsync(descriptor_) != 0) refuse(errno);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (descriptor >= 0 && ::close(descriptor) != 0) refuse(errno);
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
  const int descriptor =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // somebody's fifo is no reason to wait
  const bool good = descriptor >= 0 && fsync(descriptor) == 0;
  const int why = errno;
  if (descriptor >= 0) close(descriptor);
  if (!good) throw RunError("cannot flush " + path.string() + " to disk: " + std::generic_category().message(why));
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
  OpenFile out(file, O_WRONLY | O_APPEND | O_CREAT, "write");
  if (out.links() > 1)
    return write_whole(file, read_whole(file).append(bytes));  // it has another name: a copy of it
  if (write_all(out.get(), bytes) && out.close()) return;
  const int why = errno;
  if (out.get() >= 0) [[maybe_unused]]
    const int ignored = ftruncate(out.get(), out.size());
  refuse_access("write", file, why);
}

std::string read_whole(const fs::path& file) {
  const OpenFile in(file, O_RDONLY, "read");
  if (in.get() < 0) return "";
  std::string bytes(static_cast<std::size_t>(in.size()), '\0');
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
