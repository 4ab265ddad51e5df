#pragma once
/// Communicators and the program as a whole; against a fault of MPICH 4.0 and 4.1 over UCX and TCP. Private to
/// framework/mpi.

#include <mpi.h>

#include <cstdint>

namespace isohalo::detail {

/// Does `comm` have all ranks of the program and no others? Local.
bool spans_world(MPI_Comm comm);

/// Of the program's ranks that `comm` has, in its order: the same on all of them. Local.
std::uint64_t fingerprint_of_members(MPI_Comm comm);

/// Has the launcher (MPICH's Hydra) put all ranks of the program on one compute node, and does `comm` have no
/// others? False where that is not known. The same on all of them. Local: to ask MPI takes 50 to 100 ms of 4 ranks
/// on 2 cores.
bool launched_on_one_node(MPI_Comm comm);

/// To be called as the last act before MPI's own part of MPI_Finalize. Where that may hang, see finalize_guard.cpp,
/// it makes all ranks ready for it; elsewhere it does nothing. `on_node`: how many of the program's ranks are known
/// to be on this node; nothing is needed when these are all. Collective over MPI_COMM_WORLD.
void settle_before_finalize(int on_node) noexcept;

}  // namespace isohalo::detail
