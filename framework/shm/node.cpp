#include "framework/shm/node.hpp"

#include <algorithm>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

/// When the communicator is freed.
int Node::forget(MPI_Comm, int, void* cached, void*) {
  auto* const node = static_cast<std::shared_ptr<Node>*>(cached);
  MPI_Comm_free(&(*node)->comm_);
  delete node;
  return MPI_SUCCESS;
}

int Node::key() {
  static const int key = [] {
    int k = MPI_KEYVAL_INVALID;
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &k, nullptr), "MPI_Comm_create_keyval");
    return k;
  }();
  return key;
}

std::shared_ptr<const Node> Node::of(const Communicator& comm) {
  void* cached = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(comm.get(), key(), static_cast<void*>(&cached), &found), "MPI_Comm_get_attr",
            comm.get());
  if (found) return *static_cast<std::shared_ptr<Node>*>(cached);
  const std::shared_ptr<Node> node(new Node(comm));
  mpi_check(MPI_Comm_set_attr(comm.get(), key(), new std::shared_ptr<Node>(node)), "MPI_Comm_set_attr", comm.get());
  return node;
}

Node::Node(const Communicator& comm) : comm_(comm.make_node_communicator()), spins_(comm.spins()) {
  mpi_check(MPI_Comm_rank(comm_, &layout_.me), "MPI_Comm_rank");
  const int leader = static_cast<int>(-max(-comm.rank()));
  std::vector<int> leader_of(static_cast<std::size_t>(comm.size()));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&leader, 1, MPI_INT, leader_of.data(), 1, MPI_INT, comm.get(), &request),
            "MPI_Iallgather", comm.get());
  comm.wait(request, "leaders of nodes");
  auto& leaders = layout_.leaders;
  leaders = leader_of;
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  for (int r = 0; r < comm.size(); ++r) {
    const int l = leader_of[static_cast<std::size_t>(r)];
    layout_.node_of_rank.push_back(
        static_cast<int>(std::lower_bound(leaders.begin(), leaders.end(), l) - leaders.begin()));
    if (l == leader) layout_.members.push_back(r);
  }
}

bool Node::holds(int rank) const {
  return std::binary_search(layout_.members.begin(), layout_.members.end(), rank);
}

std::int64_t Node::max(std::int64_t value) const {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MAX, comm_, &request), "MPI_Iallreduce",
            comm_);
  wait(std::span(&request, 1));
  return value;
}

void Node::wait(std::span<MPI_Request> requests) const {
  wait_all(requests, spins_, "shared memory");
}

}  // namespace isohalo
