#include "datatypes/mpi_check.hpp"

#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

void mpi_check(int rc, const char* place, MPI_Comm comm) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(rc, text, &length);
  std::string who;
  int rank = 0;
  if (comm != MPI_COMM_NULL && MPI_Comm_rank(comm, &rank) == MPI_SUCCESS)
    who = "rank " + std::to_string(rank) + ": ";
  throw MpiError(rc, who + place + ": " + std::string(text, static_cast<std::size_t>(length)));
}

bool mpi_is_active() noexcept {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started && !ended;
}

void require_mpi() {
  if (mpi_is_active()) return;
  int started = 0;
  MPI_Initialized(&started);
  throw UsageError(started ? "isohalo is used after MPI_Finalize: end what uses it before"
                           : "isohalo is used before MPI_Init: initialise MPI first");
}

}  // namespace isohalo
