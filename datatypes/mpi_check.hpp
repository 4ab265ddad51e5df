#pragma once
/// Return codes of MPI, checked in release builds too, and what they tell of MPI.

#include <mpi.h>

namespace isohalo {

/// Throws MpiError naming the rank in `comm` (if given), the place and MPI's own text when `rc` is an error.
/// Not collective.
void mpi_check(int rc, const char* place, MPI_Comm comm = MPI_COMM_NULL);

/// True between MPI_Init and MPI_Finalize: the only time in which handles may be released.
bool mpi_is_active() noexcept;

/// The same, and MPI is of the family that isohalo was built with, so that handles mean the same to both.
bool mpi_is_usable() noexcept;

/// Throws UsageError before MPI_Init and after MPI_Finalize, where MPI itself would end the program, and where the
/// MPI of this process is of another family than the one that isohalo was built with, whose handles differ. Local.
void require_mpi();

/// Whether MPI combines elements of `type` by `op`, neither of which is null. Asked with no elements and on
/// MPI_COMM_SELF, so that what MPI says against it goes to no error handler: MPI_Reduce_local would take it to that
/// of the whole program. Local.
bool mpi_combines(MPI_Op op, MPI_Datatype type);

}  // namespace isohalo
