#include "framework/mpi/progress.hpp"

#include <sched.h>
#include <time.h>

#include "datatypes/mpi_check.hpp"

namespace isohalo {

namespace {
/// Yields before the loop starts to sleep: long enough (about a millisecond) for any message, so that only waits
/// for disks and for ranks that compute pay for a sleep.
constexpr int kYields = 3000;
}  // namespace

void Backoff::pause() {
  ++misses_;
  if (misses_ <= spins_) return;
  if (misses_ <= spins_ + kYields) {
    sched_yield();
    return;
  }
  const timespec nap{0, 20000};
  nanosleep(&nap, nullptr);
}

void wait_all(std::span<MPI_Request> requests, int spins, const char* place) {
  Backoff backoff(spins);
  for (;;) {
    int done = 0;
    mpi_check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), place);
    if (done) return;
    backoff.pause();
  }
}

void wait_until(const std::function<bool()>& done, int spins) {
  Backoff backoff(spins);
  while (!done()) backoff.pause();
}

}  // namespace isohalo
