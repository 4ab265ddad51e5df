#pragma once
/// Messages that take as long as on a slow network: for benchmarks of schedules on a few cores.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// A send occupies its sender for `pipeline_s`, asleep; the message arrives `latency_s` after that (alpha_r and
/// alpha_p of the pipelining postal model). Both 0: off.
struct EmulatedLatency {
  double latency_s = 0, pipeline_s = 0;
  bool on() const { return latency_s > 0 || pipeline_s > 0; }
  bool operator==(const EmulatedLatency&) const = default;
};

namespace detail {

/// All digits of a number.
std::string exact_text(double v);
/// Text that differs between different emulations: ranks compare it at set-up.
std::string to_text(const EmulatedLatency& e);

/// Stamps that travel beside the real messages and say when these arrive. All ranks must share a clock, that is a
/// compute node. Nothing happens while the emulation is off.
class LatencyStamps {
 public:
  LatencyStamps() = default;
  /// Room for stamps of so many messages. `tag`: one of their own.
  LatencyStamps(const EmulatedLatency& latency, int tag, std::size_t receives, std::size_t sends);

  bool on() const { return latency_.on(); }
  /// Announces message `k` from `peer`.
  void expect(const Communicator& comm, std::size_t k, int peer);
  /// Occupies this rank with sending message `k` to `peer` and stamps it.
  void send(const Communicator& comm, std::size_t k, int peer);
  /// Have messages first .. last-1 arrived?
  bool arrived(std::size_t first, std::size_t last);
  bool sent(std::size_t first, std::size_t last);

 private:
  EmulatedLatency latency_;
  int tag_ = 0;
  std::int64_t free_ns_ = 0;                       // when the last send was through
  std::vector<std::int64_t> incoming_, outgoing_;  // nanoseconds of the monotonic clock
  std::vector<MPI_Request> receives_, sends_;
};

/// A nap between two tests of an emulated message; as every wait of ours it advances all active operations.
void nap_for_emulation();

}  // namespace detail

}  // namespace isohalo
