/// The hierarchy of this machine's caches and sockets, as hwloc sees it.

#ifdef ISOHALO_HWLOC
#include <hwloc.h>
#endif

#include <array>
#include <memory>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/shm/hierarchy.hpp"

namespace isohalo {

namespace {

#ifdef ISOHALO_HWLOC

constexpr std::array kLevels{HWLOC_OBJ_PACKAGE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
using Place = std::array<std::int64_t, kLevels.size()>;

/// Of each level the only one that this process may run in, -1 if there are several or hwloc knows none.
Place own_place() {
  Place place;
  place.fill(-1);
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return place;
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> freed(topology, hwloc_topology_destroy);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> bound(hwloc_bitmap_alloc(),
                                                                            hwloc_bitmap_free);
  if (hwloc_topology_load(topology) != 0 || !bound ||
      hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return place;
  for (std::size_t level = 0; level < kLevels.size(); ++level) {
    hwloc_obj_t found = nullptr;
    while ((found = hwloc_get_next_obj_by_type(topology, kLevels[level], found)))
      if (found->cpuset && hwloc_bitmap_isincluded(bound.get(), found->cpuset)) place[level] = found->logical_index;
  }
  return place;
}

#else

using Place = std::array<std::int64_t, 1>;

Place own_place() {
  return {-1};
}

#endif

}  // namespace

Hierarchy Hierarchy::of_machine(MPI_Comm node, int spins) {
  static const Place mine = own_place();  // looking takes milliseconds; a process does not move
  int ranks = 1;
  mpi_check(MPI_Comm_size(node, &ranks), "MPI_Comm_size");
  std::vector<Place> all(static_cast<std::size_t>(ranks));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node, &request),
            "MPI_Iallgather", node);
  wait_all(std::span(&request, 1), spins, "the hierarchy of a compute node");
  std::vector<std::vector<std::int64_t>> places(all.size());
  for (std::size_t level = 0; level < mine.size(); ++level) {
    bool known = true;
    for (const Place& p : all) known = known && p[level] >= 0;
    // An unknown level divides nothing; those below cannot be trusted where ranks move between its groups.
    for (std::size_t r = 0; r < all.size(); ++r) places[r].push_back(known ? all[r][level] : 0);
  }
  return of_places(places);
}

}  // namespace isohalo
