/// The hierarchy of this machine's caches and sockets, as hwloc sees it.

#ifdef ISOHALO_HWLOC
#include <hwloc.h>
#endif

#include <array>
#include <memory>
#include <vector>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/shm/hierarchy.hpp"

namespace isohalo {

namespace {

using Place = std::vector<std::int64_t>;

#ifdef ISOHALO_HWLOC

constexpr std::array kLevels{HWLOC_OBJ_PACKAGE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};

/// Of each level the only one that this process may run in, -1 if there are several or hwloc knows none.
Place place_of_this_process() {
  Place place(kLevels.size(), -1);
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

Place place_of_this_process() {
  return {-1};
}

#endif

}  // namespace

Hierarchy Hierarchy::of_machine(MPI_Comm node, int spins, const std::vector<std::int64_t>& own_place) {
  Place mine = own_place;
  if (mine.empty()) {
    static const Place looked_up = place_of_this_process();  // it takes milliseconds; a process does not move
    mine = looked_up;
  }
  int ranks = 1;
  mpi_check(MPI_Comm_size(node, &ranks), "MPI_Comm_size");
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks) * mine.size());
  MPI_Request request = MPI_REQUEST_NULL;
  const auto levels = static_cast<int>(mine.size());
  mpi_check(MPI_Iallgather(mine.data(), levels, MPI_INT64_T, all.data(), levels, MPI_INT64_T, node, &request),
            "MPI_Iallgather", node);
  wait_all(std::span(&request, 1), spins, "the hierarchy of a compute node");
  std::vector<Place> places(static_cast<std::size_t>(ranks), Place(mine.size()));
  for (std::size_t level = 0; level < mine.size(); ++level) {
    const auto at = [&](std::size_t rank) { return all[rank * mine.size() + level]; };
    bool known = true;
    for (std::size_t r = 0; r < places.size(); ++r) known = known && at(r) >= 0;
    for (std::size_t r = 0; r < places.size(); ++r) places[r][level] = known ? at(r) : 0;  // divides nothing
  }
  return of_places(places);
}

}  // namespace isohalo
