#pragma once
/// The private duplicate of a user's communicator, and what the library keeps with it.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isohalo {

/// A private duplicate of a user's communicator. It is made once, cached on the user's communicator as an attribute
/// and shared by everything that the library builds on it, so no message of ours can meet one of theirs. A cheap
/// handle; the duplicate is freed with its last owner, or in MPI_Finalize.
class Communicator {
 public:
  /// The cached duplicate of `user`. Collective over `user` the first time, local afterwards.
  /// Throws UsageError for MPI_COMM_NULL or an inter-communicator, before MPI_Init and after MPI_Finalize, MpiError
  /// otherwise.
  static Communicator of(MPI_Comm user);

  /// The duplicate. Throws UsageError after MPI_Finalize.
  MPI_Comm get() const;
  /// Has the user's error handler: the communicator that this one duplicates, or one of this rank when it is gone.
  MPI_Comm user() const;
  int rank() const;
  int size() const;
  /// Ranks of this communicator on this rank's compute node; are they more than the cores that it has online?
  int ranks_on_node() const;
  bool oversubscribed() const;
  /// A new communicator of the ranks on this rank's compute node, in their order, which the caller frees. Its
  /// errors are returned. Collective.
  MPI_Comm make_node_communicator() const;
  /// Spins before a wait yields the core.
  int spins() const;
  /// `count` message tags of their own, the same on all ranks because objects are created in the same order on all.
  /// They come round again when a quarter of what MPI has is used up. Not collective. Throws UsageError when that
  /// is less than `count`.
  int take_tags(int count) const;
  /// Waits with back-off. Local.
  void wait(MPI_Request& request, const char* place) const { wait(std::span(&request, 1), place); }
  void wait(std::span<MPI_Request> requests, const char* place) const;

  /// Non-blocking collectives under the back-off loop. Collective.
  void barrier() const;
  void broadcast(void* data, std::int64_t bytes, int root) const;
  /// Of a text or a vector, as long as the root's.
  template <class List>
  void broadcast(List& list, int root) const {
    std::uint64_t length = list.size();
    broadcast(&length, sizeof length, root);
    list.resize(length);
    broadcast(list.data(), static_cast<std::int64_t>(length * sizeof(list[0])), root);
  }
  void allreduce(void* in_out, int count, MPI_Datatype type, MPI_Op op) const;
  std::uint64_t sum(std::uint64_t value) const { return allreduce(&value, 1, MPI_UINT64_T, MPI_SUM), value; }
  std::int64_t min(std::int64_t value) const { return allreduce(&value, 1, MPI_INT64_T, MPI_MIN), value; }
  std::int64_t max(std::int64_t value) const { return allreduce(&value, 1, MPI_INT64_T, MPI_MAX), value; }

 private:
  friend class TagLease;
  struct State;
  explicit Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// A message tag of an operation that may live as long as it likes, the same on all ranks because these are taken
/// in the same order on all. There are two ranges of them, each a quarter of what MPI has, which come round again
/// when they are used up: for persistent requests, and for operations that end soon. Move-only. Local.
class TagLease {
 public:
  enum class Stay { long_, short_ };
  /// Throws MpiError (MPI_ERR_OTHER) when the next tag is still in use.
  TagLease(const Communicator& comm, Stay stay);
  TagLease(TagLease&&) noexcept = default;
  TagLease& operator=(TagLease&&) = delete;
  ~TagLease();
  int tag() const { return tag_; }

 private:
  std::shared_ptr<Communicator::State> state_;  ///< none when moved from
  int tag_ = 0;
};

}  // namespace isohalo
