#pragma once
/// What the machine is and what runs on it, for run metadata and benchmarks. Local.

#include <string>

namespace isohalo {

/// What MPI says of itself, in several lines; the first of them.
std::string mpi_library_text();
std::string mpi_library_name();

std::string host_name();

/// "PROCESSOR, n cores, MPI library, Kokkos version".
std::string machine_text();

}  // namespace isohalo
