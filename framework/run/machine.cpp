#include "framework/run/machine.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
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

std::string mpi_library_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

std::string mpi_library_name() {
  const std::string text = mpi_library_text();
  return text.substr(0, text.find('\n'));
}

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

std::string machine_text() {
  std::string library = mpi_library_name();
  std::replace(library.begin(), library.end(), '\t', ' ');
  return fmt::format("{}, {} cores, {}, Kokkos {}.{} {}", processor(), sysconf(_SC_NPROCESSORS_ONLN), library,
                     KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, Kokkos::DefaultHostExecutionSpace::name());
}

}  // namespace isohalo
