#pragma once
/// Against a fault of MPICH 4.0 and 4.1 over UCX and TCP: ranks on several compute nodes, or without shared
/// memory between them (UCX_TLS, a container each), may wait for ever in MPI_Finalize.

namespace isohalo {

/// To be called after MPI_Init on all ranks, before anything else sets attributes of MPI_COMM_SELF: the last act
/// before MPI's own part of MPI_Finalize then makes all ranks ready for it, where that may hang. Up to 512 ranks.
/// UCX_TLS is set on all ranks or on none, and all ranks of one node are in the process namespace of their process
/// manager or none is.
void guard_finalize();

}  // namespace isohalo
