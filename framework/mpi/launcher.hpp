#pragma once
/// What the launcher says about the program. Private to framework/mpi.

#include <mpi.h>

namespace isohalo::detail {

/// How many of the first `size` ranks of `group` are in `other`. Local.
int count_common(MPI_Group group, int size, MPI_Group other);

/// How many ranks the launcher says it has started on this compute node; null: it does not say. Local.
const char* launched_here();

/// Has the launcher (MPICH's Hydra, Open MPI's) put all ranks of the program on one compute node, and does `comm` have no
/// others? False where that is not known. The same on all of them. Local: to ask MPI takes 50 to 100 ms of 4 ranks
/// on 2 cores.
bool launched_on_one_node(MPI_Comm comm);

}  // namespace isohalo::detail
