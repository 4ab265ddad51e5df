#pragma once
/// The MPI that the program runs with: libisohalo_mpi.so is linked with none, and meets whatever the program
/// brings. Private to framework/preload.

#include <string>

namespace isohalo::preload {

/// What is found at the first call. Local.
struct ProcessMpi {
  bool ours = false;   ///< it has the binary interface that this library was compiled for, and MPI 4.0's functions
  int rank = 0;        ///< of this process in the world, also where `ours` is false
  std::string name{};  ///< "Open MPI v5.0.11"; empty where the process has no MPI at all
};

/// Never calls MPI with a handle of ours where `ours` is false. On rank 0 the first call says so, in one line on
/// standard error, and warns of settings.
const ProcessMpi& process_mpi();

/// The function of this name that the program would call without this library, or null.
void* next_function(const char* name);

}  // namespace isohalo::preload
