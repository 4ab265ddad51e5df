#include "framework/io/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "datatypes/error.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

/// An open file; closing it tells whether all went well (network file systems report a full disk only then).
class OpenFile {
 public:
  OpenFile(const fs::path& file, int flags)
      : fd_(open(file.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { finish(); }

  bool write_all(std::string_view bytes) {
    if (fd_ < 0) return false;
    while (!bytes.empty()) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  off_t size() const {
    struct stat status {};
    return fd_ >= 0 && fstat(fd_, &status) == 0 ? status.st_size : 0;
  }
  void cut(off_t size) const { [[maybe_unused]] const int ignored = ftruncate(fd_, size); }
  bool finish() {
    if (fd_ < 0) return true;
    const int fd = fd_;
    fd_ = -1;
    return close(fd) == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void refuse(const fs::path& file, int why) {
  throw RunError("cannot write " + file.string() + ": " + std::generic_category().message(why));
}

}  // namespace

void write_whole(const fs::path& file, std::string_view bytes) {
  const fs::path temporary = file.string() + ".tmp";
  OpenFile out(temporary, O_TRUNC);
  if (!out.write_all(bytes) || !out.finish() || rename(temporary.c_str(), file.c_str()) != 0) {
    const int why = errno;
    unlink(temporary.c_str());
    refuse(file, why);
  }
}

void append_whole(const fs::path& file, std::string_view bytes) {
  OpenFile out(file, O_APPEND);
  const off_t before = out.size();
  if (out.write_all(bytes) && out.finish()) return;
  const int why = errno;
  out.cut(before);
  refuse(file, why);
}

}  // namespace isohalo
