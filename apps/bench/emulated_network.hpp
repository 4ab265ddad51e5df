#pragma once
/// Messages that take as long as on a slow network: for benchmarks and tests of schedules on a few cores.

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// A send occupies its sender for `pipeline_s`, asleep; the message arrives `latency_s` after that (alpha_r and
/// alpha_p of the pipelining postal model). Both 0: off.
struct EmulatedLatency {
  double latency_s = 0, pipeline_s = 0;
  bool on() const { return latency_s > 0 || pipeline_s > 0; }
};

/// While it lives, the messages of one communicator take that long. The library knows nothing of it: this stands
/// behind MPI's profiling interface, where it sees MPI_Isend_c, MPI_Irecv_c (without _c where MPI is older than 4)
/// and MPI_Testall, so it is for operations that send, receive and wait by these alone. Stamps that travel beside
/// the messages say when these arrive. All ranks must share a clock, that is a compute node. One at a time.
class EmulatedNetwork {
 public:
  /// Does nothing when `latency` is off. Collective.
  EmulatedNetwork(const Communicator& comm, const EmulatedLatency& latency);
  EmulatedNetwork(const EmulatedNetwork&) = delete;
  EmulatedNetwork& operator=(const EmulatedNetwork&) = delete;
  /// All messages must have arrived. Collective.
  ~EmulatedNetwork();
};

}  // namespace isohalo
