#include "framework/io/readable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace isohalo {

ReadableFile::ReadableFile(const std::filesystem::path& file)
    : name_(file.string()), descriptor_(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (!descriptor_) throw UsageError(name_ + (errno == ENOENT ? ": no such file" : " cannot be read: " + reason()));
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) == 0 && S_ISREG(status.st_mode)) return;
  throw UsageError(name_ + (S_ISDIR(status.st_mode) ? " is a directory, not a file" : " is no regular file"));
}

std::int64_t ReadableFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) throw UsageError(name_ + " cannot be read: " + reason());
  return status.st_size;
}

void ReadableFile::read(std::int64_t at, void* to, std::size_t bytes) const {
  for (auto* next = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = ::pread(descriptor_.get(), next, bytes, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw UsageError(name_ + (got == 0 ? ": it ends within its data" : " cannot be read: " + reason()));
    next += got;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

std::filesystem::path pinned(const std::filesystem::path& file, const Communicator& comm) {
  std::error_code none;
  std::string name = file.string();
  if (comm.rank() == 0)
    if (const auto target = std::filesystem::read_symlink(file, none); !none)
      name = (file.parent_path() / target).string();  // an absolute target stands alone
  comm.broadcast(name, 0);
  return name;
}

}  // namespace isohalo
