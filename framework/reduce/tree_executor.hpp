#pragma once
/// Brings the root of a frontier tree together over the ranks of a communicator.

#include <cstring>
#include <type_traits>
#include <vector>

#include "framework/reduce/program_executor.hpp"

namespace isohalo::detail {

/// Runs a compiled program on values of type V, trivially copyable.
template <class V, class Op>
class TreeExecutor final : public ProgramExecutor {
  static_assert(std::is_trivially_copyable_v<V>, "values travel as bytes");

 public:
  /// `tag`, `tag` + 1: tags of its own, the same on all ranks.
  TreeExecutor(const Communicator& comm, Op op, int tag) : ProgramExecutor(comm, tag), op_(op) {}

  /// Local. The nodes must be the same on all ranks and the programs fit together.
  void compile(const std::vector<FrontierNode>& nodes, const ReduceProgram& program,
               const EmulatedLatency& latency = {}) {
    ProgramExecutor::compile(program, sizeof(V), latency);
    children_.clear();
    for (std::int32_t n : combines()) {
      const FrontierNode& node = nodes[static_cast<std::size_t>(n)];
      children_.push_back({node.left, node.right});
    }
    values_.resize(nodes.size());
  }

  /// The value of a tree node: leaves of this rank are to be set before `start`, the root is there after the end.
  V& value(std::int32_t node) { return values_[static_cast<std::size_t>(node)]; }

 private:
  struct Children {
    std::int32_t left, right;
  };

  void work(const Step& step) override {
    for (std::size_t k = step.first_in; k < step.last_in; ++k)
      std::memcpy(&value(incoming_nodes()[k]), incoming(k), sizeof(V));
    for (std::size_t k = step.first_combine; k < step.last_combine; ++k)
      value(combines()[k]) = op_(value(children_[k].left), value(children_[k].right));
    for (std::size_t k = step.first_out; k < step.last_out; ++k)
      std::memcpy(outgoing(k), &value(outgoing_nodes()[k]), sizeof(V));
  }

  Op op_;
  std::vector<Children> children_;
  std::vector<V> values_;
};

}  // namespace isohalo::detail
