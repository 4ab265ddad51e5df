#include "framework/reduce/emulated_latency.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

bool all_done(std::vector<MPI_Request>& requests, std::size_t first, std::size_t last) {
  int done = 1;
  if (first < last)
    mpi_check(MPI_Testall(static_cast<int>(last - first), &requests[first], &done, MPI_STATUSES_IGNORE),
              "MPI_Testall of stamps");
  return done;
}

}  // namespace

std::string exact_text(double v) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, v).ptr};
}

std::string to_text(const EmulatedLatency& e) {
  return exact_text(e.latency_s) + " s, " + exact_text(e.pipeline_s) + " s";
}

LatencyStamps::LatencyStamps(const EmulatedLatency& latency, int tag, std::size_t receives, std::size_t sends)
    : latency_(latency), tag_(tag) {
  if (!on()) return;
  incoming_.resize(receives);
  outgoing_.resize(sends);
  receives_.assign(receives, MPI_REQUEST_NULL);
  sends_.assign(sends, MPI_REQUEST_NULL);
}

void LatencyStamps::expect(const Communicator& comm, std::size_t k, int peer) {
  if (!on()) return;
  mpi_check(MPI_Irecv(&incoming_[k], 1, MPI_INT64_T, peer, tag_, comm.get(), &receives_[k]), "MPI_Irecv of a stamp",
            comm.get());
}

void LatencyStamps::send(const Communicator& comm, std::size_t k, int peer) {
  if (!on()) return;
  // From the time it should have been through, not the time it woke up: late sleepers do not add up.
  free_ns_ = std::max(free_ns_, now_ns()) + static_cast<std::int64_t>(latency_.pipeline_s * 1e9);
  const timespec until{free_ns_ / kSecond, free_ns_ % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
  outgoing_[k] = free_ns_ + static_cast<std::int64_t>(latency_.latency_s * 1e9);
  mpi_check(MPI_Isend(&outgoing_[k], 1, MPI_INT64_T, peer, tag_, comm.get(), &sends_[k]), "MPI_Isend of a stamp",
            comm.get());
}

bool LatencyStamps::arrived(std::size_t first, std::size_t last) {
  if (!on()) return true;
  if (!all_done(receives_, first, last)) return false;
  const std::int64_t now = now_ns();
  return std::all_of(incoming_.begin() + static_cast<std::ptrdiff_t>(first),
                     incoming_.begin() + static_cast<std::ptrdiff_t>(last),
                     [now](std::int64_t t) { return t <= now; });
}

bool LatencyStamps::sent(std::size_t first, std::size_t last) {
  return !on() || all_done(sends_, first, last);
}

void nap_for_emulation() {
  Operation::advance_all();
  const timespec nap{0, 30000};
  nanosleep(&nap, nullptr);
}

}  // namespace isohalo::detail
