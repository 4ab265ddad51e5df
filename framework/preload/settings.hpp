#pragma once
/// What the environment asks of libisohalo_mpi.so. Private to framework/preload.

#include "framework/shm/collectives.hpp"

namespace isohalo::preload {

bool switched_off();   ///< ISOHALO_MPI=off
bool report_wanted();  ///< ISOHALO_MPI_REPORT=1

/// What ISOHALO_MPI_HIERARCHY and ISOHALO_MPI_ALGORITHM say, and `spins`. What cannot be is a warning of rank 0,
/// and is left out. Between MPI_Init and MPI_Finalize.
NodeCollectivesOptions options_of_settings(int spins);

/// On standard error, one line for each variable whose name begins as ours do and is none, or whose value says
/// nothing. Local.
void warn_of_settings();

}  // namespace isohalo::preload
