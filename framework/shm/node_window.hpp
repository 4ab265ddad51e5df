#pragma once
/// Memory that the ranks of one node share, and one-way channels in it.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

class NodeWindow;

/// A one-way channel between two ranks of a node: two slots, used in turn, a note of the receiver to the sender,
/// and counters on cache lines of their own. All of it lies in the sender's memory. A message needs one
/// synchronisation: the sender may fill a slot as soon as the message before the last has been taken, which it has
/// when traffic is symmetric.
///
/// One end of it. Both ends count messages alike; neither call waits. Not thread safe.
class ChannelEnd {
 public:
  ChannelEnd() = default;

  /// Sender: the slot for the next message, or null while the receiver still has the message before the last.
  std::byte* free_slot() const;
  /// Sender: the slot is filled.
  void publish();
  /// Receiver: the next message, or null when it has not come.
  const std::byte* next_message() const;
  /// Receiver: the message has been read.
  void release();

  /// What the receiver tells the sender before a message, `note_bytes` of its request. The receiver writes it and
  /// calls `open`, once for each message that it will wait for; the sender may read it while `opened`, that is
  /// until it publishes the message.
  std::byte* note() const;
  /// Receiver: the note for the next message is written.
  void open();
  /// Sender: the receiver has opened the next message.
  bool opened() const;

 private:
  friend class NodeWindow;
  friend class ChannelGroup;
  ChannelEnd(std::byte* base, std::int64_t slot_bytes, std::int64_t note_bytes)
      : base_(base), slot_bytes_(slot_bytes), note_bytes_(note_bytes) {}
  bool idle() const;
  std::byte* slot(std::uint64_t message) const;

  std::byte* base_ = nullptr;
  std::int64_t slot_bytes_ = 0, note_bytes_ = 0;
  std::uint64_t count_ = 0;  ///< messages sent or received here
};

/// The ends that one rank has of channels opened together. Its part of the window is used again when it is gone and
/// every message in it has been taken. Move-only; may outlive MPI_Finalize, but not be used then.
class ChannelGroup {
 public:
  ChannelGroup() = default;
  ChannelGroup(ChannelGroup&&) noexcept = default;
  ChannelGroup& operator=(ChannelGroup&&) noexcept;
  ~ChannelGroup();

  std::vector<ChannelEnd> outgoing, incoming;  ///< in the order of the requests

 private:
  friend class NodeWindow;
  std::shared_ptr<NodeWindow> window_;
  std::size_t segment_ = 0;
  std::int64_t offset_ = 0, bytes_ = 0;
};

/// The shared memory of a communicator's ranks on this node, of which objects take parts. It grows by adding
/// segments and keeps them until MPI_Finalize.
class NodeWindow : public std::enable_shared_from_this<NodeWindow> {
 public:
  /// The one window of this communicator, made at the first call. Collective then, local afterwards.
  static std::shared_ptr<NodeWindow> of(const Communicator& comm);

  /// Ranks of the communicator on this node.
  int ranks() const { return static_cast<int>(on_node_.size()); }
  bool on_node(int rank) const;

  struct Outgoing {
    int peer;  ///< a rank of the communicator on this node
    std::int64_t bytes;
    std::int64_t note_bytes = 0;
  };
  /// Opens channels: each rank names those to which it sends and from which it receives, several to one peer in the
  /// same order on both sides. Collective over the ranks of the node. Throws RunError, the same on all of them,
  /// when the system's shared memory has no room.
  ChannelGroup open(const std::vector<Outgoing>& outgoing, const std::vector<int>& incoming);

  ~NodeWindow();

 private:
  friend class ChannelGroup;
  struct Segment;
  struct Retired;
  explicit NodeWindow(const Communicator& comm);
  void give_back(ChannelGroup& group) noexcept;
  bool take(std::int64_t bytes, ChannelGroup& group);
  void reclaim();
  void grow(std::int64_t bytes);
  void exchange_places(const std::vector<Outgoing>& outgoing, const std::vector<int>& incoming,
                       ChannelGroup& group);
  void release() noexcept;
  static int release_all(MPI_Comm, int, void*, void*);

  MPI_Comm node_ = MPI_COMM_NULL;
  int spins_;
  std::vector<int> on_node_;  ///< ranks of the communicator, by node rank
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<Retired> retired_;
};

}  // namespace isohalo
