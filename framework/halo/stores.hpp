#pragma once
/// How copies write: through the caches or past them.

#include <cstdint>
#include <string>

#include "framework/halo/workers.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

enum class Stores {
  cached,     ///< a line that is written is read first, and stays in a cache as long as there is room
  streaming,  ///< long rows go past the caches, without being read first; where the processor can
};

/// How the copies of an exchange are stored, and by whom.
struct ExchangeStores {
  Stores packed = Stores::cached;    ///< into buffers, and from there into ghosts
  Stores in_place = Stores::cached;  ///< into ghosts at once, this rank's or others'
  Workers workers{};
};

namespace detail {

/// What suits an exchange in which this rank sends and copies within its arrays so many bytes: streaming, when the
/// ranks that share a cache copy so much that little would still be there when it is read. Local.
///
/// 32 MiB of cache, two cores, `shared`, times with streaming over times without: 256^3 cells at depth 4 0.65 to
/// 0.85 on 2, 4 and 8 ranks, and 0.9 to 1.0 with a sweep after each exchange; 128^3 cells on 2 ranks, which
/// fit, 1.7.
ExchangeStores stores_for(std::int64_t sent, std::int64_t copied, const Communicator& comm);

/// Processors in a list such as "0-3,64-67", as Linux writes it.
std::int64_t processors_in(const std::string& list);

}  // namespace detail

}  // namespace isohalo
