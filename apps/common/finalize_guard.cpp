/// MPICH before 4.2 ends a connection over TCP by a message that the other side must acknowledge, and then waits in
/// a barrier of the process manager in which it acknowledges nothing (its pull request 6596). A rank that comes to
/// MPI_Finalize while another still acknowledges in its last MPI call gets ready first, leaves for the barrier, and
/// the other waits for it for ever: a third to a half of all runs of 4 ranks on 2 nodes. Ranks of one node talk TCP
/// where UCX_TLS leaves shared memory out, which is for UCX to say: whoever sets it has the guard. And where each
/// has a process namespace of its own, as in one container each.
///
/// It cannot happen when all ranks have sent to all others, and none makes progress between the first one's arrival
/// in MPI_Finalize and its own: each then sends its request before it acknowledges others' on the same connection.

#include "apps/common/finalize_guard.hpp"

#include <mpi.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "framework/mpi/launcher.hpp"

namespace isohalo {

namespace {

/// Beyond, connections between all pairs cost more than they are worth.
constexpr int kMostRanks = 512;
/// Where the process manager cannot be asked: surely all ranks have left the last barrier after that long.
constexpr useconds_t kPause_us = 300'000;
constexpr const char* kTransports = "UCX_TLS";

bool library_may_hang() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view all(text.data()), key = "MPICH Version:";
  const std::size_t at = all.find(key);
  if (at == all.npos || all.find("ch4:ucx") == all.npos) return false;
  const std::size_t begin = all.find_first_not_of(" \t", at + key.size());
  const std::string_view version = begin == all.npos ? "" : all.substr(begin);
  return version.starts_with("4.0") || version.starts_with("4.1");
}

/// The socket on which MPICH speaks version 1 of the process manager's protocol with Hydra; -1: another manager or
/// version.
int manager_socket() {
  const char* const version = std::getenv("MPIR_CVAR_PMI_VERSION");
  if (!std::getenv("HYDI_CONTROL_FD") || (version && std::strcmp(version, "1") != 0)) return -1;
  const char* const text = std::getenv("PMI_FD");
  int fd = -1;
  if (text) std::from_chars(text, text + std::strlen(text), fd);
  return fd;
}

/// Is the process manager in another process namespace?
bool manager_is_elsewhere() {
  ucred made_by{};  // 0 stands for processes that cannot be seen from here
  socklen_t size = sizeof made_by;
  return getsockopt(manager_socket(), SOL_SOCKET, SO_PEERCRED, &made_by, &size) == 0 && made_by.pid == 0;
}

/// The process manager's barrier: no MPI call is under way in it.
void manager_barrier(int fd) {
  // A signal may interrupt both; a reply that nobody reads would confuse MPI.
  const auto again = [](ssize_t moved) { return moved < 0 && errno == EINTR; };
  for (std::string_view left = "cmd=barrier_in\n"; !left.empty();) {
    const ssize_t sent = write(fd, left.data(), left.size());
    if (again(sent)) continue;
    if (sent <= 0) return;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  for (char c = 0; c != '\n';) {
    const ssize_t got = read(fd, &c, 1);
    if (!again(got) && got <= 0) return;
  }
}

/// Where guard_finalize has not found out. Collective.
bool may_talk_tcp(int ranks) {
  if (detail::launched_on_one_node(MPI_COMM_WORLD)) return true;
  MPI_Comm node = MPI_COMM_NULL;
  int here = 0;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS)
    return true;
  MPI_Comm_size(node, &here);
  int given = std::getenv(kTransports) != nullptr;
  if (here == ranks) MPI_Allreduce(MPI_IN_PLACE, &given, 1, MPI_INT, MPI_MAX, node);
  MPI_Comm_free(&node);
  return here != ranks || given;
}

/// Collective over MPI_COMM_WORLD.
int settle(MPI_Comm, int, void*, void*) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  // Our own, since the user may have left messages in MPI_COMM_WORLD; without the user's attributes.
  MPI_Comm world = MPI_COMM_NULL;
  if (ranks == 1 || ranks > kMostRanks || !library_may_hang() || !may_talk_tcp(ranks) ||
      MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &world) != MPI_SUCCESS)
    return MPI_SUCCESS;
  const int fd = manager_socket();
  int all_have_one = fd >= 0;
  MPI_Allreduce(MPI_IN_PLACE, &all_have_one, 1, MPI_INT, MPI_MIN, world);
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (rank + distance) % ranks, from = (rank - distance + ranks) % ranks;
    char out = 0, in = 0;
    MPI_Sendrecv(&out, 1, MPI_CHAR, to, 0, &in, 1, MPI_CHAR, from, 0, world, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(world);
  MPI_Comm_free(&world);
  if (all_have_one)
    manager_barrier(fd);
  else
    usleep(kPause_us);
  return MPI_SUCCESS;
}

}  // namespace

void guard_finalize() {
  // What settle does takes tens of milliseconds of 4 ranks on 2 cores: not where they surely share memory.
  if (detail::launched_on_one_node(MPI_COMM_WORLD) && !std::getenv(kTransports) && !manager_is_elsewhere()) return;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, settle, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm_free_keyval(&key);
}

}  // namespace isohalo
