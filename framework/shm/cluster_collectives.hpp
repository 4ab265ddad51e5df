#pragma once
/// Collectives of ranks on several compute nodes: within each through shared memory, between them by messages of
/// one rank each.
///
/// Source: Li, Hoefler, Snir 2013, section 2.5.

#include "framework/shm/collectives.hpp"

namespace isohalo {

/// As NodeCollectives: all ranks of a communicator call the same ones in the same order. Results have the same bits
/// in every run on as many ranks, nodes and groups of a node.
class ClusterCollectives {
 public:
  /// Collective over `comm`, of which it keeps a duplicate. Null, on all ranks, when a node gives no memory.
  static std::unique_ptr<ClusterCollectives> make(MPI_Comm comm, const NodeCollectivesOptions& options);
  /// The same where all ranks are known to share a compute node. `comm` itself is used and must live as long.
  static std::unique_ptr<ClusterCollectives> make_on_one_node(MPI_Comm comm, const NodeCollectivesOptions& options);
  /// Local, as it frees communicators without waiting for others; MPI must still be active.
  ~ClusterCollectives();
  ClusterCollectives(const ClusterCollectives&) = delete;
  ClusterCollectives& operator=(const ClusterCollectives&) = delete;

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(leaders_.size()); }
  /// Does it reduce by operations that do not commute? Only where the ranks of each node are consecutive.
  bool in_rank_order() const { return in_rank_order_; }

  void barrier();
  void broadcast(std::byte* data, std::size_t bytes, int root);
  /// As NodeCollectives::allreduce. Nodes are joined as the ranks of a node are, in the order of their lowest
  /// ranks.
  void allreduce(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine);
  void reduce(const std::byte* mine, std::byte* result, std::size_t count, const detail::Combine& combine,
              int root);
  /// As NodeCollectives': a block of each rank, in the order of ranks. The root's `mine` may be null: its block is,
  /// or stays, in its place of `all`.
  void gather(const std::byte* mine, std::size_t bytes, std::byte* all, int root);
  void scatter(const std::byte* all, std::size_t bytes, std::byte* mine, int root);
  /// `mine` may be its place of `all`.
  void allgather(const std::byte* mine, std::size_t bytes, std::byte* all);

 private:
  ClusterCollectives() = default;

  /// The rank that speaks for a node: the root on its own, the lowest elsewhere (root -1: everywhere).
  int speaker(int node, int root) const;
  bool speaks(int root) const { return speaker(my_node_, root) == me_; }
  void exchange(const void* out, void* in, std::size_t bytes, int to, int from);
  void over_nodes(std::byte* data, std::size_t count, const detail::Combine& combine, int root);
  void by_doubling(std::byte* data, std::size_t count, const detail::Combine& combine, int root);
  void by_parts(std::byte* data, std::size_t count, const detail::Combine& combine, int root);
  std::size_t slots(int node) const;
  std::byte* by_nodes(std::byte* all, std::size_t bytes);
  void reorder(std::byte* all, std::size_t bytes, bool to_ranks);
  std::vector<MPI_Request> with_other_nodes(std::byte* whole, std::size_t bytes, int root, bool receives);

  MPI_Comm comm_ = MPI_COMM_NULL, node_comm_ = MPI_COMM_NULL;
  std::unique_ptr<NodeCollectives> node_;
  int me_ = 0, my_node_ = 0, spins_ = 0;
  std::vector<int> leaders_, node_of_, place_of_;  ///< by node; by rank: its node, and its rank there
  std::vector<std::size_t> first_slot_;  ///< by node: of its ranks, when all are sorted by nodes; and the end
  bool in_rank_order_ = false;
  std::vector<std::byte> there_, sum_;
};

}  // namespace isohalo
