#pragma once
/// Does MPI combine elements of a type by an operation?

#include <mpi.h>

namespace isohalo {

/// Whether MPI combines elements of `type` by `op`, neither of which is null. Asked with no elements and on
/// MPI_COMM_SELF, so that what MPI says against it goes to no error handler: MPI_Reduce_local would take it to that
/// of the whole program. Local.
bool mpi_combines(MPI_Op op, MPI_Datatype type);

}  // namespace isohalo
