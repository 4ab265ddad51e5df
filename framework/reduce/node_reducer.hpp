#pragma once
/// Brings the root of a frontier tree together over the ranks of a communicator.

#include <type_traits>
#include <vector>

#include "framework/mpi/progress.hpp"
#include "framework/reduce/program_messages.hpp"
#include "framework/reduce/reduce_program.hpp"

namespace isohalo::detail {

/// Executes a compiled program on values of type V, trivially copyable. Persistent: `start` as often as wanted,
/// each ended by a `test` that returned true before the next. Nothing is allocated after `compile`.
template <class V, class Op>
class NodeReducer {
  static_assert(std::is_trivially_copyable_v<V>, "values travel as bytes");

 public:
  /// `tag`, `tag` + 1: tags of its own, the same on all ranks.
  NodeReducer(const Communicator& comm, Op op, int tag) : comm_(comm), op_(op), tag_(tag) {}

  /// Local. The nodes must be the same on all ranks and the programs fit together.
  void compile(const std::vector<FrontierNode>& nodes, const ReduceProgram& program,
               const EmulatedLatency& latency = {}) {
    messages_ = ProgramMessages(program, sizeof(V), tag_, latency);
    children_.clear();
    for (std::int32_t n : messages_.combines()) {
      const FrontierNode& node = nodes[static_cast<std::size_t>(n)];
      children_.push_back({node.left, node.right});
    }
    values_.resize(nodes.size());
    incoming_.resize(messages_.incoming_nodes().size());
    outgoing_.resize(messages_.outgoing_nodes().size());
    step_ = messages_.steps().size();
  }

  /// The value of a node: leaves of this rank are to be set before `start`, the root is there after the end.
  V& value(std::int32_t node) { return values_[static_cast<std::size_t>(node)]; }

  void start() {
    messages_.post(comm_, incoming_.data());
    step_ = 0;
    advance();
  }

  /// Goes on as far as messages have arrived; true when this rank has done its part. Does not wait.
  bool test() { return advance() && messages_.sent(); }

 private:
  struct Children {
    std::int32_t left, right;
  };

  bool advance() {
    for (; step_ < messages_.steps().size(); ++step_) {
      const auto& step = messages_.steps()[step_];
      if (!messages_.arrived(step)) return false;
      for (std::size_t k = step.first_in; k < step.last_in; ++k)
        value(messages_.incoming_nodes()[k]) = incoming_[k];
      for (std::size_t k = step.first_combine; k < step.last_combine; ++k)
        value(messages_.combines()[k]) = op_(value(children_[k].left), value(children_[k].right));
      for (std::size_t k = step.first_out; k < step.last_out; ++k)
        outgoing_[k] = value(messages_.outgoing_nodes()[k]);
      messages_.send(comm_, step, outgoing_.data());
    }
    return true;
  }

  Communicator comm_;
  Op op_;
  int tag_;
  ProgramMessages messages_;
  std::vector<Children> children_;
  std::vector<V> values_, incoming_, outgoing_;
  std::size_t step_ = 0;
};

}  // namespace isohalo::detail
