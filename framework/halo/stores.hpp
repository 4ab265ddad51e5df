#pragma once
/// How copies write: through the caches or past them.

#include <cstdint>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

enum class Stores {
  cached,     ///< a line that is written is read first, and stays in a cache as long as there is room
  streaming,  ///< long rows go past the caches, without being read first; where the processor can
};

namespace detail {

/// What suits an exchange in which this rank sends, or copies to itself, so many bytes. Local.
///
/// Streaming costs half the time again in messages that the receiver would have found in a cache, and saves a third
/// of it in others (4 and 8 ranks on two cores with 32 MiB of last-level cache, 256^3 cells, depth 4: 0.67 to 0.78;
/// 128^3 at the same depth: 1.2 to 2).
Stores stores_for(std::int64_t bytes, const Communicator& comm);

}  // namespace detail

}  // namespace isohalo
