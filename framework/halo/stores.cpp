#include "framework/halo/stores.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace isohalo::detail {

namespace {

struct Cache {
  std::int64_t bytes = 0, processors = 1;  ///< that share it
};

/// The last cache before memory, as Linux describes that of the first processor; no bytes where it does not.
Cache find_last_level_cache() {
  Cache found;
  for (int index = 0;; ++index) {
    const std::string directory = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::ifstream size(directory + "/size"), shared(directory + "/shared_cpu_list");
    std::int64_t kibibytes = 0;
    if (!(size >> kibibytes)) return found;
    std::string list;
    std::getline(shared, list);
    if (kibibytes << 10 > found.bytes) found = {kibibytes << 10, processors_in(list)};
  }
}

}  // namespace

std::int64_t processors_in(const std::string& list) {
  std::istringstream in(list);
  std::int64_t count = 0, first = 0, last = 0;
  while (in >> first) {
    last = first;
    if (in.peek() == '-') in.get(), in >> last;
    count += last - first + 1;
    in.get();
  }
  return std::max(count, std::int64_t{1});
}

ExchangeStores stores_for(std::int64_t sent, std::int64_t copied, const Communicator& comm) {
  static const Cache cache = find_last_level_cache();
  static const std::int64_t processors = std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
  const std::int64_t ranks = (comm.ranks_on_node() * cache.processors + processors - 1) / processors;
  // A third of the cache is for the rest.
  const auto stores = [&](std::int64_t bytes) {
    return cache.bytes > 0 && bytes > cache.bytes / 3 * 2 / ranks ? Stores::streaming : Stores::cached;
  };
  // A packed cell is in its array, in one of two slots in turn (or in a buffer on both sides), and in a ghost.
  return {stores(4 * sent + 2 * copied), stores(2 * sent + 2 * copied), {}};
}

}  // namespace isohalo::detail
