#pragma once
/// A compiled reduction run by messages: brings the root of a frontier tree together over the ranks of a
/// communicator.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/reduce/operations.hpp"
#include "framework/reduce/reduce_program.hpp"
#include "framework/schedule/stages.hpp"

namespace isohalo::detail {

/// What need not know the type of the values, only their size. By itself it sends values that mean nothing, which
/// is enough to time a program; see TreeExecutor. Persistent; nothing is allocated after `compile`.
///
/// The program is laid out flat: between two reductions a solver fills the caches with other things, and each list
/// of its own would be one more miss.
class ProgramExecutor : public StageExecutor<ProgramExecutor> {
 public:
  /// `tag`: one of its own, the same on all ranks. Local.
  ProgramExecutor(const Communicator& comm, std::size_t value_bytes, int tag)
      : comm_(comm), value_bytes_(value_bytes), tag_(tag) {}

  /// Local. The programs of all ranks must fit together. Before the first start.
  void compile(const ReduceProgram& program);

  /// Begins; to be ended by `test` or `wait` before the next. Local.
  void start() { launch(); }
  void wait() { Operation::wait(comm_.spins()); }

 protected:
  /// From where to before where in one of the lists.
  struct Part {
    std::size_t first = 0, last = 0;
  };
  struct FlatStage {
    Part in, out;        ///< values that arrive and leave, in `nodes`
    Part receive, send;  ///< messages
    Part combine;        ///< in `nodes`
  };
  /// What the values that arrive are combined to: from `incoming` to `outgoing`.
  virtual void work(const FlatStage&) {}

  /// Tree nodes: of the values that arrive, of those that leave, and those that are formed.
  const std::vector<std::int32_t>& incoming_nodes() const { return incoming_nodes_; }
  const std::vector<std::int32_t>& outgoing_nodes() const { return outgoing_nodes_; }
  const std::vector<std::int32_t>& combines() const { return combines_; }
  const std::byte* incoming(std::size_t value) const { return incoming_.data() + value * value_bytes_; }
  std::byte* outgoing(std::size_t value) { return outgoing_.data() + value * value_bytes_; }

 private:
  struct Message {
    int peer;
    std::size_t first, values;
  };

  friend class StageExecutor<ProgramExecutor>;
  std::size_t stages() const { return stages_.size() - 1; }  // the last of the list is the end
  void begin();
  bool arrived(std::size_t stage) {
    const Part& r = stages_[stage].receive;
    return test_all({receive_requests_.data() + r.first, r.last - r.first}, "a reduction");
  }
  void enter(std::size_t stage);
  bool left() { return test_all(send_requests_, "a reduction"); }

  Communicator comm_;
  std::size_t value_bytes_;
  int tag_;
  std::vector<FlatStage> stages_{FlatStage{}};
  std::vector<std::int32_t> incoming_nodes_, outgoing_nodes_, combines_;
  std::vector<Message> receives_, sends_;
  std::vector<MPI_Request> receive_requests_, send_requests_;
  std::vector<std::byte> incoming_, outgoing_;
};

/// Runs a compiled program on values of type V, trivially copyable.
template <class V, class Op>
class TreeExecutor final : public ProgramExecutor {
  static_assert(std::is_trivially_copyable_v<V>, "V must be trivially copyable: values travel as bytes");

 public:
  /// `tag`: one of its own, the same on all ranks.
  TreeExecutor(const Communicator& comm, Op op, int tag) : ProgramExecutor(comm, sizeof(V), tag), op_(op) {}

  /// Local. The nodes must be the same on all ranks and the programs fit together.
  void compile(const std::vector<FrontierNode>& nodes, const ReduceProgram& program) {
    ProgramExecutor::compile(program);
    children_.clear();
    for (const std::int32_t n : combines()) {
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

  void work(const FlatStage& stage) override {
    for (std::size_t k = stage.in.first; k < stage.in.last; ++k)
      std::memcpy(&value(incoming_nodes()[k]), incoming(k), sizeof(V));
    for (std::size_t k = stage.combine.first; k < stage.combine.last; ++k)
      value(combines()[k]) = combined(op_, value(children_[k].left), value(children_[k].right));
    for (std::size_t k = stage.out.first; k < stage.out.last; ++k)
      std::memcpy(outgoing(k), &value(outgoing_nodes()[k]), sizeof(V));
  }

  Op op_;
  std::vector<Children> children_;
  std::vector<V> values_;
};

}  // namespace isohalo::detail
