#include <cstdlib>
#include <string>

#include "apps/isohalo/commands.hpp"

namespace isohalo {

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
