#pragma once
/// One-way channels between ranks of a compute node, through shared memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/shm/node.hpp"
#include "framework/shm/shared_memory.hpp"

namespace isohalo {

class ChannelGroup;

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
  friend class ChannelGroup;
  ChannelEnd(std::byte* base, std::int64_t slot_bytes, std::int64_t note_bytes)
      : base_(base), slot_bytes_(slot_bytes), note_bytes_(note_bytes) {}
  std::byte* slot(std::uint64_t message) const;

  std::byte* base_ = nullptr;
  std::int64_t slot_bytes_ = 0, note_bytes_ = 0;
  std::uint64_t count_ = 0;  ///< messages sent or received here
};

/// The ends that one rank has of channels opened together, and their memory. Each rank may let go of its own when
/// it likes: what others have not read yet stays mapped by them. Move-only.
class ChannelGroup {
 public:
  struct Outgoing {
    int peer;  ///< a rank of the communicator on this node
    std::int64_t bytes;
    std::int64_t note_bytes = 0;
  };

  ChannelGroup() = default;
  /// Opens channels: each rank names those to which it sends and from which it receives, several to one peer in the
  /// same order on both sides. Collective over the ranks of the node. Throws RunError, the same on all of them,
  /// when the system's shared memory has no room.
  ChannelGroup(const Node& node, const std::vector<Outgoing>& outgoing, const std::vector<int>& incoming);

  std::vector<ChannelEnd> outgoing, incoming;  ///< in the order of the requests

 private:
  void connect(const Node& node, const std::vector<Outgoing>& out, const std::vector<int>& in,
               const SharedAddress& mine);

  SharedMemory own_;
  std::vector<MappedMemory> theirs_;
};

}  // namespace isohalo
