#pragma once
/// What libisohalo_mpi.so knows of a communicator, and what it has done. Private to framework/preload.

#include <mpi.h>

#include <array>
#include <cstdint>

#include "framework/shm/cluster_collectives.hpp"

namespace isohalo::preload {

enum class Function { barrier, bcast, reduce, allreduce, gather, allgather, scatter };
inline constexpr std::array kFunctions{"MPI_Barrier", "MPI_Bcast",     "MPI_Reduce", "MPI_Allreduce",
                                       "MPI_Gather",  "MPI_Allgather", "MPI_Scatter"};

/// Why a call was left to MPI.
enum class Reason { off, threads, others, alone, intercommunicator, nodes, memory, arguments, operation, foreign };
inline constexpr std::array kReasons{"switched off",     "MPI_THREAD_MULTIPLE", "another rank will not",
                                     "one rank",         "inter-communicator",  "several compute nodes",
                                     "no shared memory", "arguments",           "operation",
                                     "another MPI"};

/// The collectives of `comm`, or null: the call is to be passed on, and is counted so. The same on all of its
/// ranks. Collective at the first call on a communicator.
ClusterCollectives* collectives_for(MPI_Comm comm, Function function) noexcept;

void count_handled(Function function, std::uint64_t bytes) noexcept;
void count_passed_on(Function function, Reason reason) noexcept;
void count_bytes_passed_on(Function function, std::uint64_t bytes) noexcept;

/// One JSON line on standard error of rank 0 when ISOHALO_MPI_REPORT is 1, once. To be called before MPI ends.
void report();

}  // namespace isohalo::preload
