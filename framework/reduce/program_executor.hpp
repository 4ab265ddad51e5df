#pragma once
/// A compiled reduction run by messages, for values of one size. What need not know the type of the values.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/reduce/emulated_latency.hpp"
#include "framework/reduce/reduce_program.hpp"
#include "framework/schedule/rounds.hpp"

namespace isohalo::detail {

/// A program laid out flat. Values of all messages of one direction stand in one buffer, step by step, message by
/// message; `incoming_nodes` and `outgoing_nodes` say which tree node each is of. By itself it sends values that
/// mean nothing, which is enough to time a program; see TreeExecutor. Persistent; nothing is allocated after
/// `compile`.
class ProgramExecutor : public RoundExecutor<ProgramExecutor> {
 public:
  /// `tag`, `tag` + 1: tags of its own, the same on all ranks. Local.
  ProgramExecutor(const Communicator& comm, int tag) : comm_(comm), tag_(tag) {}

  /// Local. The programs of all ranks must fit together.
  void compile(const ReduceProgram& program, std::size_t value_bytes, const EmulatedLatency& latency);

  /// Begins; to be ended by `test` or `wait` before the next. Local.
  void start() { launch(); }
  void wait() { Operation::wait(comm_.spins()); }

 protected:
  struct Step {
    std::size_t first_in = 0, last_in = 0;                                           // values that arrive
    std::size_t first_out = 0, last_out = 0;                                         // values that leave
    std::size_t first_receive = 0, last_receive = 0, first_send = 0, last_send = 0;  // messages
    std::size_t first_combine = 0, last_combine = 0;
  };
  /// What the values of a step are combined to: from `incoming` to `outgoing`.
  virtual void work(const Step&) {}

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

  friend class RoundExecutor<ProgramExecutor>;
  std::size_t rounds() const { return steps_.size(); }
  void begin();
  bool arrived(std::size_t round) {
    const Step& s = steps_[round];
    return test_all({receive_requests_.data() + s.first_receive, s.last_receive - s.first_receive},
                    "a reduction") &&
           (!stamps_.on() || stamps_.arrived(s.first_receive, s.last_receive));
  }
  void enter(std::size_t round);
  bool left() {
    return test_all(send_requests_, "a reduction") && (!stamps_.on() || stamps_.sent(0, sends_.size()));
  }
  void pause(Backoff& backoff) final;

  Communicator comm_;
  int tag_;
  std::vector<Step> steps_;
  std::vector<std::int32_t> incoming_nodes_, outgoing_nodes_, combines_;
  std::vector<Message> receives_, sends_;
  std::vector<MPI_Request> receive_requests_, send_requests_;
  std::vector<std::byte> incoming_, outgoing_;
  std::size_t value_bytes_ = 0;
  LatencyStamps stamps_;
};

}  // namespace isohalo::detail
