#pragma once
/// Collectives of ranks on several compute nodes: within each through shared memory, between them by messages of
/// one rank each.
///
/// Source: Li, Hoefler, Snir 2013, section 2.5.

#include <deque>
#include <memory>
#include <vector>

#include "framework/mpi/progress.hpp"
#include "framework/shm/collectives.hpp"

namespace isohalo {

namespace detail {
class ClusterProgram;
}  // namespace detail

/// All ranks of a communicator call the same ones in the same order, with the same roots and sizes, and either all
/// make the call or all start a request. Memory: host. Results have the same bits in every run on as many ranks,
/// nodes and groups of a node, whatever algorithms are chosen. Ranks that wait spin, then give the core away, at
/// last sleep, and move other operations and MPI's messages on meanwhile. Throws MpiError when MPI refuses an
/// operation, and UsageError, on the rank itself, for a root that there is not. Not thread safe.
class ClusterCollectives : private Operation {
 public:
  class Request;
  /// Collective over `comm`, of which it keeps a duplicate. Null, on all ranks, when a node gives no memory.
  static std::unique_ptr<ClusterCollectives> make(MPI_Comm comm, const NodeCollectivesOptions& options);
  /// The same where all ranks are known to share a compute node. `comm` itself is used and must live as long.
  static std::unique_ptr<ClusterCollectives> make_on_one_node(MPI_Comm comm, const NodeCollectivesOptions& options);
  /// Local, as it frees communicators without waiting for others; MPI must still be active, and no request.
  ~ClusterCollectives() override;
  ClusterCollectives(const ClusterCollectives&) = delete;
  ClusterCollectives& operator=(const ClusterCollectives&) = delete;

  int rank() const { return me_; }
  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(leaders_.size()); }
  /// Does it reduce by operations that do not commute? Only where the ranks of each node are consecutive.
  bool in_rank_order() const { return in_rank_order_; }

  /// Throws UsageError also for an operation that does not commute unless `in_rank_order()`.
  void run(const Collective& c);
  /// The same as a request that is not begun.
  Request request(const Collective& c);

 private:
  using Program = detail::ClusterProgram;
  struct Begun;
  ClusterCollectives();

  // What this rank does.
  void plan(Program& p, const Collective& c);
  void barrier(Program& p);
  void broadcast(Program& p, const Collective& c);
  void allreduce(Program& p, const Collective& c);
  void reduce(Program& p, const Collective& c);
  void gather(Program& p, const Collective& c);
  void scatter(Program& p, const Collective& c);
  void allgather(Program& p, const Collective& c);

  bool proceed() override;
  template <class Advance>
  void await(const Advance& advance);

  /// The rank that speaks for a node: the root on its own, the lowest elsewhere (root -1: everywhere).
  int speaker(int node, int root) const;
  bool speaks(int root) const { return speaker(my_node_, root) == me_; }
  void require_root(const Collective& c) const;
  void require_order(const Combine& combine) const;
  void on_node(Program& p, const Collective& c);
  void over_nodes(Program& p, std::byte* data, const Collective& c);
  void by_doubling(Program& p, std::byte* data, const Collective& c);
  void by_parts(Program& p, std::byte* data, const Collective& c);
  std::size_t slots(int node) const;
  std::byte* by_nodes(Program& p, std::byte* all, std::size_t bytes);
  void reorder(std::byte* by_ranks, std::byte* by_nodes, std::size_t bytes, bool to_ranks) const;
  template <class Visit>
  void each_other_node(const Visit& visit) const;

  MPI_Comm comm_ = MPI_COMM_NULL, node_comm_ = MPI_COMM_NULL;
  MPI_Comm user_ = MPI_COMM_NULL;  ///< by which MPI's messages are moved on
  std::unique_ptr<NodeCollectives> node_;
  int me_ = 0, my_node_ = 0, spins_;
  std::vector<int> leaders_, node_of_, place_of_;  ///< by node; by rank: its node, and its rank there
  std::vector<std::size_t> first_slot_;  ///< by node: of its ranks, when all are sorted by nodes; and the end
  bool in_rank_order_ = false;
  std::unique_ptr<Program> now_;  ///< of the call that is made
  std::deque<Begun*>
      begun_;  ///< requests, in the order of their start: the first goes on, others when it has ended
};

/// A collective that can be begun again and again, as MPI's persistent ones, on all ranks in the same order among
/// requests and calls. It goes on in each test of a request and in each wait of Isohalo's, whatever is waited for,
/// but not while the program computes or waits in MPI. Move-only: what was moved from has ended. What goes while it
/// is active is waited for.
class ClusterCollectives::Request {
 public:
  Request(Request&&) noexcept;
  Request& operator=(Request&&) = delete;
  ~Request() noexcept(false);

  /// Throws UsageError if it is active. Does not wait.
  void start();
  /// Has it ended? Does what can be done now. Does not wait.
  bool test();
  void wait();

 private:
  friend class ClusterCollectives;
  Request(ClusterCollectives& owner, std::unique_ptr<Begun> begun);

  ClusterCollectives& owner_;
  std::unique_ptr<Begun> begun_;
};

}  // namespace isohalo
