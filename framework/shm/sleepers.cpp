#include "framework/shm/sleepers.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace isohalo::detail {

void Sleepers::sleep(std::uint32_t calls_before, std::int64_t timeout_ns) {
  const timespec time{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, &word(0), FUTEX_WAIT, calls_before, &time, nullptr, 0);
}

void Sleepers::call() {
  calls().fetch_add(1);
  syscall(SYS_futex, &word(0), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace isohalo::detail
