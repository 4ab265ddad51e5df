#pragma once
/// Multicasts on the live communicator, and the parameters of the cost model that they show.
///
/// Source: Ruefenacht, Bull, Booth 2017, section 5.1 (Fig. 8, Table 1): one rank sends a message to each of k
/// others, by blocking or non-blocking sends; a line through the times over k gives alpha_p and alpha_r.

#include <cstdint>
#include <span>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/schedule/schedule_cost.hpp"

namespace isohalo {

struct MulticastCase {
  int messages = 1;        ///< k, to the other ranks in turn, more than once when these are fewer
  std::int64_t bytes = 8;  ///< of a message
  bool blocking = false;   ///< a send is completed before the next begins
};

/// Times of one case in nanoseconds: from the first send until the reply, an empty message, of the rank to which
/// the last one went. By the pipelining model 2 alpha_p + (k+1) alpha_r + k bytes beta.
struct MulticastTimes {
  MulticastCase multicast;
  std::vector<double> ns = {};
};

struct MulticastOptions {
  int samples = 50;       ///< of each case
  double seconds = 0.02;  ///< no further lap of samples is begun after this time
};

/// Takes the samples, in laps of one of each case in random order; one lap more comes first and is dropped,
/// unless time is up then. ranks[0] sends, the other `ranks` of `comm` receive, further ones only hear of the
/// times. All get the same times. Collective over `comm`; throws MpiError. Waits by the back-off loop: a blocking
/// send is a non-blocking one that is awaited at once.
void time_multicasts(const Communicator& comm, const std::vector<int>& ranks, const MulticastOptions& options,
                     std::vector<MulticastTimes>& cases);

/// One time (the median or the least, say) of a case.
struct MulticastPoint {
  double messages = 1, bytes = 8, ns = 0;
};

/// alpha_p and alpha_r by least squares over the points of the smallest size, as in the paper; beta as the median
/// of the slopes from these to the larger ones with as many messages (large messages may travel by other
/// protocols). What comes out below 0 is 0. `compute_ns` is left at its default. Throws UsageError unless there are
/// two different numbers of messages of the smallest size.
MessageCosts fit_costs(std::span<const MulticastPoint> points);

/// The costs of messages between `ranks` of `comm`, measured within about 20 ms: medians of multicasts of 1 to 8
/// messages of 8 bytes and of 4 KiB; the same on all ranks. The defaults of MessageCosts when `ranks` is one alone.
/// Collective over `comm`.
MessageCosts measured_costs(const Communicator& comm, const std::vector<int>& ranks);

}  // namespace isohalo
