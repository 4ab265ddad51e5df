#include "apps/common/environment.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"

namespace isohalo {

namespace {

/// The whole number that an environment variable begins with, such as 4 of SLURM_TASKS_PER_NODE = "4(x2)".
std::optional<int> environment_number(const char* name) {
  const char* text = std::getenv(name);
  return text && *text >= '0' && *text <= '9' ? std::optional<int>(std::atoi(text)) : std::nullopt;
}

}  // namespace

void warn_of_little_shared_memory() {
  // Measured with MPICH 4.0 over UCX 1.13 on 1 to 16 ranks: UCX takes a segment of 4,292,720 bytes per rank, and a
  // queue of 20 KiB.
  constexpr double kPerRank = 4212.0 * 1024, kMiB = 1 << 20;
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(library, &length);
  if (std::string(library).find("ch4:ucx") == std::string::npos) return;
  // Whoever has chosen UCX's transports or their place knows.
  for (const char* name : {"UCX_TLS", "UCX_POSIX_DIR", "UCX_POSIX_SEG_SIZE", "UCX_MM_SEG_SIZE"})
    if (std::getenv(name)) return;
  const int ranks =
      environment_number("MPI_LOCALNRANKS").value_or(environment_number("SLURM_STEP_TASKS_PER_NODE").value_or(1));
  const int place = environment_number("MPI_LOCALRANKID").value_or(environment_number("SLURM_LOCALID").value_or(0));
  struct statvfs shm {};
  if (place != 0 || ranks < 1 || statvfs("/dev/shm", &shm) != 0) return;
  const double need = kPerRank * ranks, size = static_cast<double>(shm.f_frsize);
  const double total = static_cast<double>(shm.f_blocks) * size, rest = static_cast<double>(shm.f_bavail) * size;
  // The other ranks may have taken their part already.
  const double room = std::min(total, rest + kPerRank * (ranks - 1));
  if (room >= need) return;
  fmt::print(
      stderr,
      "isohalo: warning: /dev/shm has room for {:.1f} MiB, but MPI takes {:.1f} MiB there to start {} of this "
      "node: if it ends in UCX errors, make room (docker run --shm-size={:.0f}m) or set UCX_TLS=^posix\n",
      std::min(total, rest) / kMiB, need / kMiB, ranks == 1 ? "the rank" : fmt::format("the {} ranks", ranks),
      std::max(256.0, 4 * need / kMiB));
  std::fflush(stderr);
}

void choose_threads() {
  const char* const name = "KOKKOS_NUM_THREADS";  // Kokkos itself would end the process
  if (const std::string text = std::getenv(name) ? std::getenv(name) : "1";
      text.find_first_not_of("0123456789") != std::string::npos || text.size() > 6 || std::atoi(text.c_str()) < 1)
    throw UsageError(std::string(name) + " = " + printable(text) + " is no number of threads: use 1 or more");
  if (!std::getenv("OMP_NUM_THREADS")) setenv(name, "1", 0);
  // Every rank would print them; `warn_of_many_threads` warns once.
  setenv("KOKKOS_DISABLE_WARNINGS", "1", 0);
}

void refuse_foreign_launcher(int world_size) {
  if (world_size != 1) return;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    const char* text = std::getenv(name);
    if (!text || std::atoi(text) <= 1) continue;
    // A batch script that runs us without a launcher is fine; a step of several tasks is not.
    if (std::string(name) == "SLURM_NTASKS" && !std::getenv("SLURM_STEP_ID")) continue;
    throw UsageError(std::string("the launcher says ") + name + " = " + text +
                     ", but this program sees one rank: it was started by another MPI's mpiexec; use MPICH's "
                     "(mpiexec.mpich or mpiexec.hydra)");
  }
  const char* rank = std::getenv("PMIX_RANK");
  if (rank && std::atoi(rank) > 0)
    throw UsageError(std::string("the launcher says PMIX_RANK = ") + rank +
                     ", but this program sees one rank: use MPICH's mpiexec");
}

}  // namespace isohalo
