#include "framework/shm/hierarchy.hpp"

#ifdef ISOHALO_HWLOC
#include <hwloc.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

/// The numbers of "2x4x2"; none if it is no such text.
std::vector<std::int64_t> sizes_of(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const char *at = text.data(), *const end = at + text.size();
  for (bool more = true; more; ++at) {
    int size = 0;
    const auto [after, error] = std::from_chars(at, end, size);
    if (error != std::errc{} || size < 1 || size > 1 << 16 || (after != end && *after != 'x')) return {};
    sizes.push_back(size);
    at = after;
    more = at != end;
  }
  return sizes;
}

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

Hierarchy::Hierarchy(int ranks) {
  add_level(std::vector<int>(static_cast<std::size_t>(ranks), 0));
}

void Hierarchy::add_level(const std::vector<int>& group_of) {
  std::vector<std::vector<int>> groups;
  for (std::size_t r = 0; r < group_of.size(); ++r) {
    const auto g = static_cast<std::size_t>(group_of[r]);
    if (groups.size() <= g) groups.resize(g + 1);
    groups[g].push_back(static_cast<int>(r));
  }
  groups_.push_back(std::move(groups));
  group_of_.push_back(group_of);
}

Hierarchy Hierarchy::of_places(const std::vector<std::vector<std::int64_t>>& places) {
  const std::size_t ranks = places.size();
  Hierarchy h(static_cast<int>(ranks));
  for (std::size_t level = 0; level < places[0].size(); ++level) {
    std::map<std::pair<int, std::int64_t>, int> numbers;
    std::vector<int> group_of(ranks);
    for (std::size_t r = 0; r < ranks; ++r)
      group_of[r] = numbers.try_emplace({h.group_of_.back()[r], places[r][level]}, static_cast<int>(numbers.size()))
                        .first->second;
    if (numbers.size() > h.groups_.back().size() && numbers.size() < ranks) h.add_level(group_of);
  }
  return h;
}

std::vector<std::int64_t> Hierarchy::place_of(const std::string& text, int number) {
  const auto sizes = sizes_of(text);
  std::int64_t holds = sizes.empty() ? 0 : 1;
  for (const std::int64_t s : sizes) holds = std::min<std::int64_t>(holds * s, 1 << 30);
  if (sizes.empty()) throw UsageError("the hierarchy \"" + text + "\" is no text such as 2x4x2");
  if (holds <= number)
    throw UsageError("the hierarchy \"" + text + "\" holds " + std::to_string(holds) +
                     " ranks, there are more than " + std::to_string(number));
  std::vector<std::int64_t> place;
  for (const std::int64_t s : sizes) place.push_back(number / (holds /= s));
  return place;
}

Hierarchy Hierarchy::of_text(const std::string& text, int ranks) {
  place_of(text, ranks - 1);
  std::vector<std::vector<std::int64_t>> places;
  for (int r = 0; r < ranks; ++r) places.push_back(place_of(text, r));
  return of_places(places);
}

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

int Hierarchy::distance(int a, int b) const {
  if (a == b) return 0;
  int level = levels() - 1;
  while (group(level, a) != group(level, b)) --level;
  return levels() - level;
}

bool Hierarchy::in_rank_order() const {
  return std::all_of(group_of_.begin(), group_of_.end(),
                     [](const auto& g) { return std::is_sorted(g.begin(), g.end()); });
}

std::string Hierarchy::text() const {
  std::string all;
  std::size_t before = 1;
  bool even = true;
  for (int level = 1; level <= levels(); ++level) {
    const std::size_t here = level < levels() ? groups(level).size() : static_cast<std::size_t>(ranks());
    even = even && here % before == 0;
    for (const auto& g : groups(level - 1))
      even = even && g.size() * groups(level - 1).size() == static_cast<std::size_t>(ranks());
    all += (all.empty() ? "" : "x") + std::to_string(here / before);
    before = here;
  }
  if (even) return all;
  all.clear();
  for (const auto& g : groups(levels() - 1)) all += (all.empty() ? "" : "+") + std::to_string(g.size());
  return all;
}

}  // namespace isohalo
