#include "framework/shm/process_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

namespace isohalo::detail {

ProcessAddress ProcessAddress::of(const std::byte* at) {
  return {getpid(), at};
}

bool ProcessAddress::copy(std::byte* to, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const iovec here{to + done, bytes - done}, there{const_cast<std::byte*>(at) + done, bytes - done};
    const ssize_t came = process_vm_readv(static_cast<pid_t>(process), &here, 1, &there, 1, 0);
    if (came <= 0) return false;
    done += static_cast<std::size_t>(came);
  }
  return true;
}

}  // namespace isohalo::detail
