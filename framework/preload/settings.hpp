#pragma once
/// What the environment asks of libisohalo_mpi.so. Private to framework/preload.

namespace isohalo::preload {

bool switched_off();   ///< ISOHALO_MPI=off
bool report_wanted();  ///< ISOHALO_MPI_REPORT=1

/// On standard error, one line for each variable whose name begins as ours do and is none, or whose value says
/// nothing. Local.
void warn_of_settings();

}  // namespace isohalo::preload
