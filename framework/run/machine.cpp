#include "framework/run/machine.hpp"

#include <mpi.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <fstream>

namespace isohalo {

namespace {

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown processor";
}

}  // namespace

std::string machine_text() {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  std::string library(mpi, static_cast<std::size_t>(length));
  library = library.substr(0, library.find('\n'));
  for (char& c : library)
    if (c == '\t') c = ' ';
  return processor() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores, " + library + ", Kokkos " +
         std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) + " " +
         Kokkos::DefaultHostExecutionSpace::name();
}

}  // namespace isohalo
