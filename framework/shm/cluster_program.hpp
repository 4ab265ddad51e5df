#pragma once
/// What one rank does in a collective of several compute nodes. Private to framework/shm.

#include <cstddef>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "framework/shm/collectives.hpp"

namespace isohalo::detail {

/// Calls on the rank's compute node, messages and work of its own, one after the other. Can be done again and
/// again.
class ClusterProgram {
 public:
  // Making it. Ranks below 0 are nobody.
  void call(const NodeCollectives::Call& call) { steps_.emplace_back(call); }
  void send(const void* data, std::size_t bytes, int to) {
    if (to >= 0) steps_.emplace_back(Send{data, bytes, to});
  }
  void receive(void* data, std::size_t bytes, int from) {
    if (from >= 0) steps_.emplace_back(Receive{data, bytes, from});
  }
  /// Until all has come that was to be received before.
  void await_receives() { steps_.emplace_back(Await{false}); }
  /// And all has gone that was sent: to be called after the last send.
  void await_messages() { steps_.emplace_back(Await{true}); }
  void exchange(const void* out, void* in, std::size_t bytes, int to, int from) {
    receive(in, bytes, from);
    send(out, bytes, to);
    await_messages();
  }
  void work(std::function<void()> what) { steps_.emplace_back(std::move(what)); }
  /// Memory of its own; what it holds at first is not said.
  std::byte* room(std::size_t bytes);
  /// A program without steps, which keeps its memory for the next one.
  void clear() { steps_.clear(), at_ = rooms_used_ = 0; }

  // Doing it.
  void restart() { at_ = 0, node_call_.reset(); }
  /// As far as others have come; true at its end. Messages are in `comm`. `wait_on_node`: calls on the node are
  /// completed, not brought on.
  bool advance(NodeCollectives& node, MPI_Comm comm, bool wait_on_node);
  /// Was it a call on the node that kept it from going on?
  bool awaits_node() const { return node_call_.has_value(); }
  std::size_t at() const { return at_; }  ///< the step that it is in

 private:
  struct Send {
    const void* data;
    std::size_t bytes;
    int to;
  };
  struct Receive {
    void* data;
    std::size_t bytes;
    int from;
  };
  struct Await {
    bool sends;
  };
  std::vector<std::variant<Send, Receive, Await, NodeCollectives::Call, std::function<void()>>> steps_;
  std::size_t at_ = 0;
  std::optional<NodeCollectives::Call> node_call_;  ///< the one that has begun
  std::vector<MPI_Request> sends_, receives_;
  std::vector<std::vector<std::byte>> rooms_;
  std::size_t rooms_used_ = 0;
};

}  // namespace isohalo::detail
