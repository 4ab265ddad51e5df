#include "apps/bench/emulated_network.hpp"

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

bool done(MPI_Request& request) {
  int flag = 0;
  mpi_check(PMPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test of a stamp");
  return flag;
}

class Network {
 public:
  Network(const Communicator& comm, const EmulatedLatency& latency)
      : comm_(comm), stamps_(duplicate(comm.get(), comm.spins())), latency_(latency) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() {
    for (Stamp& s : sent_) PMPI_Wait(&s.request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&stamps_);
  }

  bool carries(MPI_Comm comm) const { return comm == comm_.get(); }

  /// Occupies this rank with sending a message and stamps it.
  void send(int peer, int tag) {
    // From the time it should have been through, not the time it woke up: late sleepers do not add up.
    free_ns_ = std::max(free_ns_, now_ns()) + static_cast<std::int64_t>(latency_.pipeline_s * 1e9);
    const timespec until{free_ns_ / kSecond, free_ns_ % kSecond};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
    while (!sent_.empty() && done(sent_.front().request)) sent_.pop_front();
    Stamp& s = sent_.emplace_back();
    s.arrives_ns = free_ns_ + static_cast<std::int64_t>(latency_.latency_s * 1e9);
    mpi_check(PMPI_Isend(&s.arrives_ns, 1, MPI_INT64_T, peer, tag, stamps_, &s.request), "MPI_Isend of a stamp");
  }

  /// Announces a message that this request stands for.
  void expect(int peer, int tag, const MPI_Request* request) {
    Stamp& s = expected_[request];
    mpi_check(PMPI_Irecv(&s.arrives_ns, 1, MPI_INT64_T, peer, tag, stamps_, &s.request), "MPI_Irecv of a stamp");
  }

  /// Is it time for all of these messages?
  bool due(const MPI_Request* requests, int count) {
    const std::int64_t now = now_ns();
    bool due = true;
    for (int k = 0; k < count; ++k)
      if (const auto s = expected_.find(requests + k); s != expected_.end())
        due = done(s->second.request) && s->second.arrives_ns <= now && due;
    return due;
  }
  void forget(const MPI_Request* requests, int count) {
    for (int k = 0; k < count; ++k) expected_.erase(requests + k);
  }

 private:
  struct Stamp {
    std::int64_t arrives_ns = 0;  ///< by the monotonic clock
    MPI_Request request = MPI_REQUEST_NULL;
  };

  Communicator comm_;
  MPI_Comm stamps_;
  EmulatedLatency latency_;
  std::int64_t free_ns_ = 0;  ///< when the last send was through
  std::deque<Stamp> sent_;
  std::map<const MPI_Request*, Stamp> expected_;  ///< by the place of the message's own request
};

std::unique_ptr<Network> network;

}  // namespace

EmulatedNetwork::EmulatedNetwork(const Communicator& comm, const EmulatedLatency& latency) {
  if (latency.on()) network = std::make_unique<Network>(comm, latency);
}

EmulatedNetwork::~EmulatedNetwork() {
  network.reset();
}

}  // namespace isohalo

// Which the library calls (datatypes/large_count.hpp).
#if MPI_VERSION >= 4
#define ISOHALO_COUNT MPI_Count
#define ISOHALO_LARGE(name) name##_c
#else
#define ISOHALO_COUNT int
#define ISOHALO_LARGE(name) name
#endif

extern "C" int ISOHALO_LARGE(MPI_Isend)(const void* data, ISOHALO_COUNT count, MPI_Datatype type, int to, int tag,
                                        MPI_Comm comm, MPI_Request* request) {
  const int rc = ISOHALO_LARGE(PMPI_Isend)(data, count, type, to, tag, comm, request);
  if (isohalo::network && isohalo::network->carries(comm)) isohalo::network->send(to, tag);
  return rc;
}

extern "C" int ISOHALO_LARGE(MPI_Irecv)(void* data, ISOHALO_COUNT count, MPI_Datatype type, int from, int tag,
                                        MPI_Comm comm, MPI_Request* request) {
  const int rc = ISOHALO_LARGE(PMPI_Irecv)(data, count, type, from, tag, comm, request);
  if (isohalo::network && isohalo::network->carries(comm)) isohalo::network->expect(from, tag, request);
  return rc;
}

extern "C" int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (isohalo::network && !isohalo::network->due(requests, count)) {
    const timespec nap{0, 30000};
    nanosleep(&nap, nullptr);
    *flag = 0;
    return MPI_SUCCESS;
  }
  const int rc = PMPI_Testall(count, requests, flag, statuses);
  if (isohalo::network && *flag) isohalo::network->forget(requests, count);
  return rc;
}
