#include "framework/io/readable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "datatypes/error.hpp"

namespace isohalo {

void refuse_unreadable(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) throw UsageError(file.string() + ": no such file");
    throw UsageError(file.string() + " cannot be read: " + std::strerror(errno));
  }
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  ::close(descriptor);
  if (known && S_ISDIR(status.st_mode)) throw UsageError(file.string() + " is a directory, not a file");
  if (!known || !S_ISREG(status.st_mode)) throw UsageError(file.string() + " is no regular file");
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
