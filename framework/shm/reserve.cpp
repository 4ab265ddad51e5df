#include "framework/shm/reserve.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>

namespace isohalo::detail {

bool memory_has_room(double bytes) {
  std::ifstream in("/proc/meminfo");
  for (std::string key, rest; in >> key; std::getline(in, rest)) {
    double kib = 0;
    if (key == "MemAvailable:" && in >> kib) return 2 * bytes <= kib * 1024;
  }
  return true;
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
