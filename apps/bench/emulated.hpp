#pragma once
/// Schedules timed under an emulated network.

#include "apps/bench/emulated_network.hpp"
#include "apps/common/report.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Times the tree allreduce (with its frontier) and the plain one by schedules of every kind; `right` becomes false
/// when a result is not what it should be, `in_order` when schedules that the simulator holds to differ by half
/// were not timed in its order. Collective over ranks of one compute node.
Json bench_emulated(const Communicator& comm, const EmulatedLatency& emulate, int repeats, bool& right,
                    bool& in_order);

}  // namespace isohalo
