#include "framework/shm/reserve.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace isohalo::detail {

bool shared_memory_has_room(double bytes) {
  constexpr double for_mpi = 1 << 20;  // locks and the like of a window
  struct statvfs room {};
  return statvfs("/dev/shm", &room) != 0 ||
         bytes + for_mpi <= static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize);
}

bool reserve_pages(std::byte* memory, std::size_t bytes) noexcept {
  // Where the process would get a signal, a system call that writes returns an error.
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (zeros < 0) return false;
  std::size_t done = 0;
  while (done < bytes) {
    constexpr std::size_t most = std::size_t{1} << 30;
    const ssize_t got = read(zeros, memory + done, std::min(most, bytes - done));
    if (got <= 0 && !(got < 0 && errno == EINTR)) break;
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  close(zeros);
  if (done == bytes) return true;
#ifdef MADV_REMOVE
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE);
#endif
  return false;
}

}  // namespace isohalo::detail
