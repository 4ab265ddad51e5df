#include "framework/shm/node_memory.hpp"

#include "datatypes/mpi_check.hpp"
#include "framework/shm/reserve.hpp"

namespace isohalo::detail {

bool reserve_shared(std::size_t bytes, SharedMemory& memory, SharedAddress& address) {
  try {
    memory = SharedMemory(bytes);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return SharedMemory::find(memory.data(), address) && reserve_pages(memory.data(), bytes);
}

std::optional<NodeMemory> NodeMemory::make(const Node& node, std::size_t bytes) {
  NodeMemory memory;
  SharedAddress mine;
  if (!reserve_shared(bytes, memory.own_, mine)) mine = {};  // of no bytes: there is none
  std::vector<SharedAddress> all(static_cast<std::size_t>(node.ranks()));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node.comm(), &request),
            "MPI_Iallgather", node.comm());
  node.wait(std::span(&request, 1));
  bool good = true;
  for (int m = 0; m < node.ranks() && good; ++m) {
    const SharedAddress& theirs = all[static_cast<std::size_t>(m)];
    const bool own = m == node.layout().me;
    if (!own) memory.others_.emplace_back(theirs);
    memory.first_.push_back(own ? memory.own_.data() : memory.others_.back().data());
    good = theirs.bytes > 0 && memory.first_.back();
  }
  if (node.max(!good) > 0) return std::nullopt;
  memory.own_.close();
  return memory;
}

}  // namespace isohalo::detail
