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
#include "framework/reduce/reduce_program.hpp"
#include "framework/schedule/rounds.hpp"

namespace isohalo::detail {

/// What need not know the type of the values, only their size. By itself it sends values that mean nothing, which
/// is enough to time a program; see TreeExecutor. Persistent; nothing is allocated after `compile`.
class ProgramExecutor : public RoundExecutor<ProgramExecutor> {
 public:
  /// `tag`: one of its own, the same on all ranks. Local.
  ProgramExecutor(const Communicator& comm, std::size_t value_bytes, int tag)
      : comm_(comm), value_bytes_(value_bytes), tag_(tag) {}

  /// Local. The programs of all ranks must fit together.
  void compile(ReduceProgram program);

  /// Begins; to be ended by `test` or `wait` before the next. Local.
  void start() { launch(); }
  void wait() { Operation::wait(comm_.spins()); }

 protected:
  /// What the values of a step are combined to. The values of its messages stand message by message at `incoming`
  /// and are to stand so at `outgoing`.
  virtual void work(const ProgramStep&, const std::byte* /*incoming*/, std::byte* /*outgoing*/) {}

 private:
  friend class RoundExecutor<ProgramExecutor>;
  std::size_t rounds() const { return program_.size(); }
  void begin();
  bool arrived(std::size_t round) {
    return test_all({receive_requests_.data() + next_.receive, program_[round].receive.size()}, "a reduction");
  }
  void enter(std::size_t round);
  bool left() { return test_all(send_requests_, "a reduction"); }
  std::size_t bytes_of(const NodeMessage& m) const { return m.nodes.size() * value_bytes_; }

  Communicator comm_;
  std::size_t value_bytes_;
  int tag_;
  ReduceProgram program_;
  std::vector<MPI_Request> receive_requests_, send_requests_;
  std::vector<std::byte> incoming_, outgoing_;  // values of all messages of a direction, step by step
  struct {
    std::size_t receive = 0, send = 0;             // messages
    std::size_t incoming_at = 0, outgoing_at = 0;  // bytes
  } next_;                                         // the first of the step to come
};

/// Runs a compiled program on values of type V, trivially copyable.
template <class V, class Op>
class TreeExecutor final : public ProgramExecutor {
  static_assert(std::is_trivially_copyable_v<V>, "values travel as bytes");

 public:
  /// `nodes`: the same on all ranks, alive as long as this object. `tag`: one of its own, the same on all ranks.
  TreeExecutor(const Communicator& comm, const std::vector<FrontierNode>& nodes, Op op, int tag)
      : ProgramExecutor(comm, sizeof(V), tag), nodes_(nodes), op_(op), values_(nodes.size()) {}

  /// The value of a tree node: leaves of this rank are to be set before `start`, the root is there after the end.
  V& value(std::int32_t node) { return values_[static_cast<std::size_t>(node)]; }

 private:
  void work(const ProgramStep& step, const std::byte* incoming, std::byte* outgoing) override {
    for (const NodeMessage& m : step.receive)
      for (const std::int32_t n : m.nodes) std::memcpy(&value(n), incoming, sizeof(V)), incoming += sizeof(V);
    for (const std::int32_t n : step.combine) {
      const FrontierNode& node = nodes_[static_cast<std::size_t>(n)];
      value(n) = op_(value(node.left), value(node.right));
    }
    for (const NodeMessage& m : step.send)
      for (const std::int32_t n : m.nodes) std::memcpy(outgoing, &value(n), sizeof(V)), outgoing += sizeof(V);
  }

  const std::vector<FrontierNode>& nodes_;
  Op op_;
  std::vector<V> values_;
};

}  // namespace isohalo::detail
