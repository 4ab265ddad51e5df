#include "framework/mpi/progress.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "datatypes/mpi_check.hpp"

namespace isohalo {

namespace {
/// Yields before the loop starts to sleep: long enough (about a millisecond) for any message, so that only waits
/// for disks and for ranks that compute pay for a sleep.
constexpr int kYields = 3000;

/// MPI is called from one thread at a time, and so are we.
std::vector<Operation*>& active() {
  static std::vector<Operation*> list = [] {
    std::vector<Operation*> room;
    room.reserve(64);  // how many are active at once depends on the time they take: no step is to allocate for that
    return room;
  }();
  return list;
}

/// A yield that lasts longer than this gave the core to somebody who computes. The scheduler lets a sleeper that
/// wakes up go first, but not one that yields, so sleeping is quicker then; for a while, until yielding is tried
/// again: some times as long as the yield took, so that the system's housekeeping, which is short, is soon
/// forgotten.
constexpr std::int64_t kLongYield_ns = 200'000, kCrowdedPerYield = 10, kMostCrowded_ns = 50'000'000;
thread_local std::int64_t crowded_until_ns = 0;

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}
}  // namespace

void Operation::activate(Operation* operation) {
  active().push_back(operation);
  operation->active_ = true;
}

void Operation::remove(Operation* operation) noexcept {
  std::erase(active(), operation);
  operation->active_ = false;
}

void Operation::advance_all() {
  for (std::size_t i = 0; i < active().size(); ++i) {
    Operation* const operation = active()[i];
    operation->test();
    if (i < active().size() && active()[i] != operation) --i;  // it ended and left the list
  }
}

bool Operation::any_active() noexcept {
  return !active().empty();
}

bool Backoff::pause_awake() {
  Operation::advance_all();
  ++misses_;
  if (misses_ <= spins_) return true;
  if (misses_ > spins_ + kYields) return false;
  const std::int64_t before = now_ns();
  if (before <= crowded_until_ns) return false;
  sched_yield();
  const std::int64_t after = now_ns();
  if (after - before > kLongYield_ns)
    crowded_until_ns = after + std::min(kCrowdedPerYield * (after - before), kMostCrowded_ns);
  return true;
}

void Backoff::pause() {
  if (pause_awake()) return;
  // The system may add 50 us to a sleep to save wake-ups. Much shorter sleeps take the core from ranks that
  // compute.
  [[maybe_unused]] thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  const timespec nap{0, 45000};
  nanosleep(&nap, nullptr);
}

void wait_all(std::span<MPI_Request> requests, int spins, const char* place) {
  for (Backoff backoff(spins); !test_all(requests, place);) backoff.pause();
}

void move_messages(MPI_Comm comm) {
  // A probe that finds a message lets MPI do nothing, so it is for one that nobody sends.
  int me = 0, there = 0, *tag = nullptr;
  mpi_check(MPI_Comm_rank(comm, &me), "MPI_Comm_rank", comm);
  mpi_check(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&tag), &there), "MPI_Comm_get_attr", comm);
  mpi_check(MPI_Iprobe(me, there ? *tag : 32767, comm, &there, MPI_STATUS_IGNORE), "MPI_Iprobe", comm);
}

MPI_Comm duplicate(MPI_Comm comm, int spins) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Comm_idup(comm, &made, &request), "MPI_Comm_idup", comm);
  wait_all(std::span(&request, 1), spins, "MPI_Comm_idup");
  return made;
}

void wait_until(const std::function<bool()>& done, int spins) {
  Backoff backoff(spins);
  while (!done()) backoff.pause();
}

}  // namespace isohalo
