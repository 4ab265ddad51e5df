#include "framework/mpi/launcher.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

int count_common(MPI_Group group, int size, MPI_Group other) {
  std::vector<int> ranks(static_cast<std::size_t>(size)), places(ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  mpi_check(MPI_Group_translate_ranks(group, size, ranks.data(), other, places.data()),
            "MPI_Group_translate_ranks");
  return static_cast<int>(std::count_if(places.begin(), places.end(), [](int p) { return p != MPI_UNDEFINED; }));
}

const char* launched_here() {
#ifdef OPEN_MPI
  return std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
#else
  return std::getenv("MPI_LOCALNRANKS");
#endif
}

bool launched_on_one_node(MPI_Comm comm) {
  for (const char* plays_nodes : {"MPIR_CVAR_NUM_CLIQUES", "MPIR_CVAR_ODD_EVEN_CLIQUES", "MPIR_CVAR_NOLOCAL"})
    if (std::getenv(plays_nodes)) return false;
#ifdef OPEN_MPI
  const char* const launched = std::getenv("OMPI_COMM_WORLD_SIZE");
#else
  const char* const launched = std::getenv("PMI_SIZE");
#endif
  const char* const here = launched_here();
  if (!here || !launched || std::strcmp(here, launched) != 0) return false;
  // Others come by MPI_Comm_spawn and its like.
  int size = 0;
  mpi_check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  MPI_Group mine = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  mpi_check(MPI_Comm_group(comm, &mine), "MPI_Comm_group");
  mpi_check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  const bool all = count_common(mine, size, world) == size;
  MPI_Group_free(&mine);
  MPI_Group_free(&world);
  return all;
}

}  // namespace isohalo::detail
