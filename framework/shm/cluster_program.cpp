#include "framework/shm/cluster_program.hpp"

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

std::byte* ClusterProgram::room(std::size_t bytes) {
  if (rooms_used_ == rooms_.size()) rooms_.emplace_back();
  auto& memory = rooms_[rooms_used_++];
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

bool ClusterProgram::advance(NodeCollectives& node, MPI_Comm comm, bool wait_on_node) {
  const char* const place = "collectives between compute nodes";
  for (; at_ < steps_.size(); ++at_) {
    auto& step = steps_[at_];
    if (const auto* s = std::get_if<Send>(&step)) {
      mpi_check(mpi::isend(s->data, static_cast<MPI_Count>(s->bytes), MPI_BYTE, s->to, 0, comm,
                           &sends_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend_c");
    } else if (const auto* r = std::get_if<Receive>(&step)) {
      mpi_check(mpi::irecv(r->data, static_cast<MPI_Count>(r->bytes), MPI_BYTE, r->from, 0, comm,
                           &receives_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Irecv_c");
    } else if (const auto* a = std::get_if<Await>(&step)) {
      if (!test_all(receives_, place)) return false;
      receives_.clear();
      if (!a->sends) continue;
      if (!test_all(sends_, place)) return false;
      sends_.clear();
    } else if (const auto* c = std::get_if<NodeCollectives::Call>(&step)) {
      if (wait_on_node) {
        node.complete(*c, false);
        continue;
      }
      if (!node_call_) node_call_ = *c;
      if (!node.advance(*node_call_)) return false;
      node_call_.reset();
    } else {
      std::get<std::function<void()>>(step)();
    }
  }
  return true;
}

}  // namespace isohalo::detail
