#include "framework/reduce/program_executor.hpp"

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

void ProgramExecutor::compile(const ReduceProgram& program) {
  for (auto* list : {&incoming_nodes_, &outgoing_nodes_, &combines_}) list->clear();
  stages_.clear(), receives_.clear(), sends_.clear();
  const auto add = [](const std::vector<NodeMessage>& list, std::vector<Message>& messages,
                      std::vector<std::int32_t>& nodes) {
    for (const NodeMessage& m : list) {
      messages.push_back({m.peer, nodes.size(), m.nodes.size()});
      nodes.insert(nodes.end(), m.nodes.begin(), m.nodes.end());
    }
  };
  for (const ProgramStage& s : program) {
    FlatStage stage{{incoming_nodes_.size()},
                    {outgoing_nodes_.size()},
                    {receives_.size()},
                    {sends_.size()},
                    {combines_.size()}};
    add(s.receive, receives_, incoming_nodes_);
    add(s.send, sends_, outgoing_nodes_);
    combines_.insert(combines_.end(), s.combine.begin(), s.combine.end());
    stage.in.last = incoming_nodes_.size(), stage.receive.last = receives_.size();
    stage.out.last = outgoing_nodes_.size(), stage.send.last = sends_.size();
    stage.combine.last = combines_.size();
    stages_.push_back(stage);
  }
  if (stages_.empty()) stages_.emplace_back();
  incoming_.resize(incoming_nodes_.size() * value_bytes_);
  outgoing_.resize(outgoing_nodes_.size() * value_bytes_);
  receive_requests_.assign(receives_.size(), MPI_REQUEST_NULL);
  send_requests_.assign(sends_.size(), MPI_REQUEST_NULL);
}

void ProgramExecutor::begin() {
  for (std::size_t k = 0; k < receives_.size(); ++k) {
    const Message& m = receives_[k];
    mpi_check(mpi::irecv(incoming_.data() + m.first * value_bytes_, static_cast<MPI_Count>(m.values * value_bytes_),
                         MPI_BYTE, m.peer, tag_, comm_.get(), &receive_requests_[k]),
              "MPI_Irecv in a reduction", comm_.get());
  }
}

void ProgramExecutor::enter(std::size_t stage) {
  const FlatStage& s = stages_[stage];
  work(s);
  for (std::size_t k = s.send.first; k < s.send.last; ++k) {
    const Message& m = sends_[k];
    mpi_check(mpi::isend(outgoing_.data() + m.first * value_bytes_, static_cast<MPI_Count>(m.values * value_bytes_),
                         MPI_BYTE, m.peer, tag_, comm_.get(), &send_requests_[k]),
              "MPI_Isend in a reduction", comm_.get());
  }
}

}  // namespace isohalo::detail
