#pragma once
/// What one rank sends, receives and keeps in an isomorphic collective: a schedule seen from that rank.
///
/// The same object is executed over MPI and, rank after rank in one process, by the tests.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/neighborhood/isomorphic.hpp"
#include "framework/neighborhood/neighbor_schedule.hpp"
#include "framework/schedule/traffic.hpp"

namespace isohalo {

/// Where a block lies on a rank.
struct BlockPlace {
  enum class Kind : std::uint8_t {
    send,      ///< in the caller's send buffer, block `index`
    receive,   ///< in the caller's receive buffer, block `index`
    temporary  ///< in storage of the operation, slot `index`
  };
  Kind kind = Kind::send;
  int index = 0;
  bool operator==(const BlockPlace&) const = default;
};

/// The blocks that travel between this rank and one peer in one stage, in an order that both ranks know.
struct LocalMessage {
  struct Part {
    int step;
    BlockPlace place;
  };
  int peer = 0;
  std::vector<Part> parts;  ///< by step, then by hop
};

struct LocalCopy {
  BlockPlace from, to;
};

struct LocalStage {
  std::vector<LocalMessage> send, receive;  ///< peers in the order of first use; a rank may be its own peer
};

/// The work of one rank. `NeighborSchedule` plus coordinates; no communication.
struct LocalSchedule {
  Algorithm algorithm = Algorithm::direct;
  int rank = 0;
  std::vector<LocalStage> stages;
  std::vector<LocalCopy> first;  ///< before stage 0: blocks that stay
  std::vector<LocalCopy> last;   ///< after the last stage: one block for several slots
  std::size_t temporaries = 0;   ///< slots for blocks that are forwarded
};

/// What `rank` does. `relative` is the list that the schedule was planned for, on the same mesh when it is a
/// ring schedule. A block whose origin or destination is off the mesh does not travel; both ends of each leg find
/// that out from coordinates.
LocalSchedule plan_local_schedule(const NeighborSchedule& schedule, std::span<const int> relative, const Mesh& mesh,
                                  int rank);

/// The same for an alltoall by the direct algorithm, from who the neighbors are: a schedule has nothing to add, and
/// to make one would take half of the set-up. Blocks between two ranks are in the order of the list. Local.
LocalSchedule direct_local_schedule(const IsomorphicNeighborhood& neighbors);

/// What all ranks send, in blocks of so many bytes. Local.
TrafficTable neighbor_traffic(const NeighborSchedule& schedule, std::span<const int> relative, const Mesh& mesh,
                              double block_bytes);

}  // namespace isohalo
