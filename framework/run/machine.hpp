#pragma once
/// What the machine is and what runs on it, for run metadata and benchmarks. Local.

#include <string>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// What MPI says of itself, in several lines; the first of them.
std::string mpi_library_text();
std::string mpi_library_name();

std::string host_name();

/// "4 ranks", or "4 ranks x 2 threads" with the threads that this rank has. Kokkos must be initialised.
std::string ranks_text(int ranks);

/// One line on standard error, from rank 0, when ranks have several threads each and fewer cores. Collective.
void warn_of_many_threads(const Communicator& comm);

/// "PROCESSOR, n cores, MPI library, Kokkos version".
std::string machine_text();

}  // namespace isohalo
