#pragma once
/// The messages of a compiled reduction, for values of one size. What need not know the type of the values.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/reduce/emulated_latency.hpp"
#include "framework/reduce/reduce_program.hpp"

namespace isohalo::detail {

/// A program laid out flat. Values of all messages of one direction stand in one array, step by step, message by
/// message; `incoming_nodes` and `outgoing_nodes` say which node each is of. Non-blocking; nothing is allocated
/// between `post` and the end.
class ProgramMessages {
 public:
  ProgramMessages() = default;
  /// `tag`, `tag` + 1: tags of this object's own. Local.
  ProgramMessages(const ReduceProgram& program, std::size_t value_bytes, int tag,
                  const EmulatedLatency& latency = {});

  struct Step {
    std::size_t first_in = 0, last_in = 0;                                           // values that arrive
    std::size_t first_out = 0, last_out = 0;                                         // values that leave
    std::size_t first_receive = 0, last_receive = 0, first_send = 0, last_send = 0;  // messages
    std::size_t first_combine = 0, last_combine = 0;
  };

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<std::int32_t>& incoming_nodes() const { return incoming_nodes_; }
  const std::vector<std::int32_t>& outgoing_nodes() const { return outgoing_nodes_; }
  const std::vector<std::int32_t>& combines() const { return combines_; }

  /// Posts all receives into `incoming`, which has room for all incoming values.
  void post(const Communicator& comm, void* incoming);
  /// Have the messages of the step arrived?
  bool arrived(const Step& step);
  /// Sends the messages of the step from `outgoing`, which stays as it is until `sent`.
  void send(const Communicator& comm, const Step& step, const void* outgoing);
  bool sent();

 private:
  struct Message {
    int peer;
    std::size_t first, values;
  };

  std::vector<Step> steps_;
  std::vector<std::int32_t> incoming_nodes_, outgoing_nodes_, combines_;
  std::vector<Message> receives_, sends_;
  std::vector<MPI_Request> receive_requests_, send_requests_;
  std::size_t value_bytes_ = 0;
  int tag_ = 0;
  LatencyStamps stamps_;
};

}  // namespace isohalo::detail
