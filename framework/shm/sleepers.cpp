#include "framework/shm/sleepers.hpp"

#include <time.h>

#include <climits>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace isohalo::detail {

void Sleepers::sleep(std::uint32_t calls_before, std::int64_t timeout_ns) {
  const timespec time{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
#ifdef __linux__
  syscall(SYS_futex, &word(0), FUTEX_WAIT, calls_before, &time, nullptr, 0);
#else
  const timespec nap{0, 20000};
  if (calls().load() == calls_before)
    nanosleep(time.tv_sec > 0 || time.tv_nsec > nap.tv_nsec ? &nap : &time, nullptr);
#endif
}

void Sleepers::call() {
  calls().fetch_add(1);
#ifdef __linux__
  syscall(SYS_futex, &word(0), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

}  // namespace isohalo::detail
