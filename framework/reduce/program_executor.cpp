#include "framework/reduce/program_executor.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

void ProgramExecutor::compile(ReduceProgram program) {
  program_ = std::move(program);
  std::size_t receives = 0, sends = 0, incoming = 0, outgoing = 0;
  for (const ProgramStep& step : program_) {
    receives += step.receive.size(), sends += step.send.size();
    for (const NodeMessage& m : step.receive) incoming += bytes_of(m);
    for (const NodeMessage& m : step.send) outgoing += bytes_of(m);
  }
  incoming_.resize(incoming);
  outgoing_.resize(outgoing);
  receive_requests_.assign(receives, MPI_REQUEST_NULL);
  send_requests_.assign(sends, MPI_REQUEST_NULL);
}

void ProgramExecutor::begin() {
  next_ = {};
  std::size_t k = 0, at = 0;
  for (const ProgramStep& step : program_)
    for (const NodeMessage& m : step.receive) {
      const std::size_t bytes = bytes_of(m);
      mpi_check(MPI_Irecv_c(incoming_.data() + at, static_cast<MPI_Count>(bytes), MPI_BYTE, m.peer, tag_,
                            comm_.get(), &receive_requests_[k++]),
                "MPI_Irecv in a reduction", comm_.get());
      at += bytes;
    }
}

void ProgramExecutor::enter(std::size_t round) {
  const ProgramStep& step = program_[round];
  work(step, incoming_.data() + next_.incoming_at, outgoing_.data() + next_.outgoing_at);
  for (const NodeMessage& m : step.receive) next_.incoming_at += bytes_of(m);
  next_.receive += step.receive.size();
  for (const NodeMessage& m : step.send) {
    const std::size_t bytes = bytes_of(m);
    mpi_check(MPI_Isend_c(outgoing_.data() + next_.outgoing_at, static_cast<MPI_Count>(bytes), MPI_BYTE, m.peer,
                          tag_, comm_.get(), &send_requests_[next_.send++]),
              "MPI_Isend in a reduction", comm_.get());
    next_.outgoing_at += bytes;
  }
}

}  // namespace isohalo::detail
