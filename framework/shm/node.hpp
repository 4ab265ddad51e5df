#pragma once
/// Which ranks of a communicator share a compute node.

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

struct NodeLayout {
  std::vector<int> leaders;       ///< lowest rank of each compute node, ascending
  std::vector<int> node_of_rank;  ///< index into `leaders`
  std::vector<int> members;       ///< ranks of this compute node, ascending; the first is its leader
  int me = 0;                     ///< this rank's place in `members`

  bool leads() const { return me == 0; }
};

/// The ranks of one compute node, by their places in `members`, and how they agree.
class Node {
 public:
  /// Of the communicator, cached on it. Collective the first time, local afterwards. It outlives the communicator,
  /// but not so its `comm`.
  static std::shared_ptr<const Node> of(const Communicator& comm);

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const NodeLayout& layout() const { return layout_; }
  int ranks() const { return static_cast<int>(layout_.members.size()); }
  /// Is this rank of the communicator on this compute node?
  bool holds(int rank) const;
  /// A private communicator of the members.
  MPI_Comm comm() const { return comm_; }
  /// The largest of the members' values. Collective over the members; waits with back-off.
  std::int64_t max(std::int64_t value) const;
  /// Waits with back-off.
  void wait(std::span<MPI_Request> requests) const;

 private:
  explicit Node(const Communicator& comm);
  static int key();
  static int forget(MPI_Comm, int, void* cached, void*);

  NodeLayout layout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int spins_;
};

}  // namespace isohalo
