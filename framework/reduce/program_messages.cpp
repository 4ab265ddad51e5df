#include "framework/reduce/program_messages.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

bool all_done(MPI_Request* requests, std::size_t count) {
  if (count == 0) return true;
  int done = 0;
  mpi_check(MPI_Testall(static_cast<int>(count), requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done;
}

}  // namespace

ProgramMessages::ProgramMessages(const ReduceProgram& program, std::size_t value_bytes, int tag,
                                 const EmulatedLatency& latency)
    : value_bytes_(value_bytes), tag_(tag) {
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
  receive_requests_.assign(receives_.size(), MPI_REQUEST_NULL);
  send_requests_.assign(sends_.size(), MPI_REQUEST_NULL);
  stamps_ = LatencyStamps(latency, tag + 1, receives_.size(), sends_.size());
}

void ProgramMessages::post(const Communicator& comm, void* incoming) {
  for (std::size_t k = 0; k < receives_.size(); ++k) {
    const Message& m = receives_[k];
    mpi_check(MPI_Irecv_c(static_cast<char*>(incoming) + m.first * value_bytes_,
                          static_cast<MPI_Count>(m.values * value_bytes_), MPI_BYTE, m.peer, tag_, comm.get(),
                          &receive_requests_[k]),
              "MPI_Irecv in a reduction", comm.get());
    stamps_.expect(comm, k, m.peer);
  }
}

bool ProgramMessages::arrived(const Step& step) {
  return all_done(receive_requests_.data() + step.first_receive, step.last_receive - step.first_receive) &&
         stamps_.arrived(step.first_receive, step.last_receive);
}

void ProgramMessages::send(const Communicator& comm, const Step& step, const void* outgoing) {
  for (std::size_t k = step.first_send; k < step.last_send; ++k) {
    const Message& m = sends_[k];
    mpi_check(MPI_Isend_c(static_cast<const char*>(outgoing) + m.first * value_bytes_,
                          static_cast<MPI_Count>(m.values * value_bytes_), MPI_BYTE, m.peer, tag_, comm.get(),
                          &send_requests_[k]),
              "MPI_Isend in a reduction", comm.get());
    stamps_.send(comm, k, m.peer);
  }
}

bool ProgramMessages::sent() {
  return all_done(send_requests_.data(), send_requests_.size()) && stamps_.sent(0, sends_.size());
}

}  // namespace isohalo::detail
