#include "framework/shm/node_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

namespace {

/// Zeroes fresh memory of a tmpfs, so that all its pages are there for good; false when there is no room. Local.
bool reserve_pages(std::byte* memory, std::size_t bytes) noexcept {
  // Where the process would get a signal, a system call that writes returns an error.
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (zeros < 0) return false;
  std::size_t done = 0;
  while (done < bytes) {
    constexpr std::size_t most = std::size_t{1} << 30;
    const ssize_t got = read(zeros, memory + done, std::min(most, bytes - done));
    if (got <= 0 && !(got < 0 && errno == EINTR)) break;
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  close(zeros);
  return done == bytes;
}

}  // namespace

bool reserve_shared(std::size_t bytes, SharedMemory& memory, SharedAddress& address) {
  try {
    memory = SharedMemory(bytes);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return SharedMemory::find(memory.data(), address) && reserve_pages(memory.data(), bytes);
}

std::optional<NodeMemory> NodeMemory::make(MPI_Comm node, int spins, std::size_t bytes) {
  int me = 0, ranks = 1;
  mpi_check(MPI_Comm_rank(node, &me), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(node, &ranks), "MPI_Comm_size");
  NodeMemory memory;
  SharedAddress mine;
  if (!reserve_shared(bytes, memory.own_, mine)) mine = {};  // of no bytes: there is none
  std::vector<SharedAddress> all(static_cast<std::size_t>(ranks));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node, &request),
            "MPI_Iallgather", node);
  wait_all(std::span(&request, 1), spins, "shared memory");
  int good = 1;
  for (int r = 0; r < ranks && good; ++r) {
    const SharedAddress& theirs = all[static_cast<std::size_t>(r)];
    const bool own = r == me;
    if (!own) memory.others_.emplace_back(theirs);
    memory.first_.push_back(own ? memory.own_.data() : memory.others_.back().data());
    good = theirs.bytes > 0 && memory.first_.back();
  }
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, node, &request), "MPI_Iallreduce", node);
  wait_all(std::span(&request, 1), spins, "shared memory");
  if (!good) return std::nullopt;
  memory.own_.close();
  return memory;
}

}  // namespace isohalo::detail
