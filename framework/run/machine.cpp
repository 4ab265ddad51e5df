#include "framework/run/machine.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <fstream>

#include "framework/halo/host_threads.hpp"
#include "framework/run/words.hpp"

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

std::string ranks_text(int ranks) {
  const int threads = host_threads();
  return counted(ranks, "rank") + (threads > 1 ? fmt::format(" x {} threads", threads) : "");
}

void warn_of_many_threads(const Communicator& comm) {
  cpu_set_t bound;
  std::int64_t cores = sysconf(_SC_NPROCESSORS_ONLN) / comm.ranks_on_node();
  if (sched_getaffinity(0, sizeof bound, &bound) == 0) cores = std::min<std::int64_t>(cores, CPU_COUNT(&bound));
  cores = comm.min(std::max<std::int64_t>(1, cores));
  const std::int64_t threads = comm.max(host_threads());
  if (comm.rank() != 0 || threads <= cores) return;
  fmt::print(stderr,
             "isohalo: warning: each rank has {} threads, but {} of its node for itself, and threads wait for each "
             "other: set OMP_NUM_THREADS={}, start fewer ranks, or let the launcher bind them to more cores\n",
             threads, counted(cores, "core"), cores);
}

std::string machine_text() {
  std::string library = mpi_library_name();
  std::replace(library.begin(), library.end(), '\t', ' ');
  const int threads = host_threads();
  return fmt::format("{}, {} cores, {}, Kokkos {}.{} {}{}", processor(), sysconf(_SC_NPROCESSORS_ONLN), library,
                     KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, Kokkos::DefaultHostExecutionSpace::name(),
                     threads > 1 ? fmt::format(", {} threads per rank", threads) : "");
}

}  // namespace isohalo
