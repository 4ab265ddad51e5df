#include "framework/shm/node_memory.hpp"

#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

std::int64_t max_on_node(MPI_Comm node, int spins, std::int64_t value) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MAX, node, &request), "MPI_Iallreduce", node);
  wait_all(std::span(&request, 1), spins, "shared memory");
  return value;
}

std::optional<NodeMemory> NodeMemory::make(MPI_Comm node, int spins, std::size_t bytes) {
  int me = 0, ranks = 1;
  mpi_check(MPI_Comm_rank(node, &me), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(node, &ranks), "MPI_Comm_size");
  NodeMemory memory;
  SharedAddress mine;  // of no bytes: there is none
  try {
    memory.own_ = SharedMemory(bytes);
    if (!SharedMemory::find(memory.own_.data(), mine)) mine = {};
  } catch (const std::bad_alloc&) {
  }
  std::vector<SharedAddress> all(static_cast<std::size_t>(ranks));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node, &request),
            "MPI_Iallgather", node);
  wait_all(std::span(&request, 1), spins, "shared memory");
  bool good = true;
  for (int r = 0; r < ranks && good; ++r) {
    if (r != me) memory.others_.emplace_back(all[static_cast<std::size_t>(r)]);
    memory.first_.push_back(r == me ? memory.own_.data() : memory.others_.back().data());
    good = all[static_cast<std::size_t>(r)].bytes > 0 && memory.first_.back();
  }
  if (max_on_node(node, spins, !good) > 0) return std::nullopt;
  return memory;
}

}  // namespace isohalo::detail
