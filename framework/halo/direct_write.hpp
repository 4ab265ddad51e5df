#pragma once
/// Ghosts that another rank of the node writes. Private to framework/halo: use HaloPlan.

#include <vector>

#include "framework/halo/array_ref.hpp"
#include "framework/shm/shared_memory.hpp"

namespace isohalo::detail {

/// Rows of at least so many bytes are written straight into the receiver's ghosts where its array can be mapped;
/// the others, strided there, are packed.
constexpr std::int64_t kDirectRow_bytes = 64;

/// What a receiver tells a sender about one array. Plain bytes.
template <int D>
struct GhostPlace {
  std::int64_t writable = 0;    ///< 0: the array lies in no shared memory, or its rows are strided
  SharedAddress memory;         ///< of the first owned cell
  std::int64_t low[D] = {};     ///< unwrapped index of that cell
  std::int64_t stride[D] = {};  ///< in bytes
};

template <int D>
GhostPlace<D> ghost_place(const ErasedArray<D>& array);

/// Other ranks' memory that recent exchanges wrote to, mapped here.
class GhostsOfPeers {
 public:
  /// To be called at the start of each exchange: forgets what the last few did not use.
  void begin_exchange();
  /// The place in this process, or null when the memory cannot be mapped.
  std::byte* find(int peer, const SharedAddress& address);

 private:
  struct Target {
    int peer;
    std::int64_t serial, last_used;
    MappedMemory memory;
  };
  std::vector<Target> targets_;
  std::int64_t exchanges_ = 0;
};

}  // namespace isohalo::detail
