#include "framework/reduce/program_executor.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

void ProgramExecutor::compile(const ReduceProgram& program, std::size_t value_bytes,
                              const EmulatedLatency& latency) {
  value_bytes_ = value_bytes;
  for (auto* list : {&incoming_nodes_, &outgoing_nodes_, &combines_}) list->clear();
  steps_.clear(), receives_.clear(), sends_.clear();
  const auto add = [](const std::vector<NodeMessage>& list, std::vector<Message>& messages,
                      std::vector<std::int32_t>& nodes) {
    for (const NodeMessage& m : list) {
      messages.push_back({m.peer, nodes.size(), m.nodes.size()});
      nodes.insert(nodes.end(), m.nodes.begin(), m.nodes.end());
    }
  };
  for (const ProgramStep& s : program) {
    Step step;
    step.first_in = incoming_nodes_.size(), step.first_receive = receives_.size();
    step.first_out = outgoing_nodes_.size(), step.first_send = sends_.size();
    step.first_combine = combines_.size();
    add(s.receive, receives_, incoming_nodes_);
    add(s.send, sends_, outgoing_nodes_);
    combines_.insert(combines_.end(), s.combine.begin(), s.combine.end());
    step.last_in = incoming_nodes_.size(), step.last_receive = receives_.size();
    step.last_out = outgoing_nodes_.size(), step.last_send = sends_.size();
    step.last_combine = combines_.size();
    steps_.push_back(step);
  }
  incoming_.resize(incoming_nodes_.size() * value_bytes);
  outgoing_.resize(outgoing_nodes_.size() * value_bytes);
  receive_requests_.assign(receives_.size(), MPI_REQUEST_NULL);
  send_requests_.assign(sends_.size(), MPI_REQUEST_NULL);
  stamps_ = LatencyStamps(latency, tag_ + 1, receives_.size(), sends_.size());
}

void ProgramExecutor::begin() {
  for (std::size_t k = 0; k < receives_.size(); ++k) {
    const Message& m = receives_[k];
    mpi_check(
        MPI_Irecv_c(incoming_.data() + m.first * value_bytes_, static_cast<MPI_Count>(m.values * value_bytes_),
                    MPI_BYTE, m.peer, tag_, comm_.get(), &receive_requests_[k]),
        "MPI_Irecv in a reduction", comm_.get());
    if (stamps_.on()) stamps_.expect(comm_, k, m.peer);
  }
}

void ProgramExecutor::enter(std::size_t round) {
  const Step& s = steps_[round];
  work(s);
  for (std::size_t k = s.first_send; k < s.last_send; ++k) {
    const Message& m = sends_[k];
    mpi_check(
        MPI_Isend_c(outgoing_.data() + m.first * value_bytes_, static_cast<MPI_Count>(m.values * value_bytes_),
                    MPI_BYTE, m.peer, tag_, comm_.get(), &send_requests_[k]),
        "MPI_Isend in a reduction", comm_.get());
    if (stamps_.on()) stamps_.send(comm_, k, m.peer);
  }
}

void ProgramExecutor::pause(Backoff& backoff) {
  if (stamps_.on())
    nap_for_emulation();
  else
    backoff.pause();
}

}  // namespace isohalo::detail
