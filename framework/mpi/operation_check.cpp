#include "framework/mpi/operation_check.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo {

bool mpi_combines(MPI_Op op, MPI_Datatype type) {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  mpi_check(MPI_Comm_get_errhandler(MPI_COMM_SELF, &before), "MPI_Comm_get_errhandler");
  mpi_check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  double in = 0, out = 0;
  const int rc = MPI_Allreduce(&in, &out, 0, type, op, MPI_COMM_SELF);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
  MPI_Errhandler_free(&before);
  return rc == MPI_SUCCESS;
}

}  // namespace isohalo
