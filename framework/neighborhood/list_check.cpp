#include "framework/neighborhood/list_check.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

std::shared_ptr<ListCheck> ListCheck::begin(const Communicator& comm, std::uint64_t fingerprint) {
  std::shared_ptr<ListCheck> check(new ListCheck(comm));
  // Two signed maxima: MPICH compares unsigned ones as signed numbers.
  check->values_[0] = static_cast<std::int64_t>(fingerprint >> 2);
  check->values_[1] = -check->values_[0];
  check->done_ = comm.size() == 1;
  if (check->done_) return check;
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, check->values_, 2, MPI_INT64_T, MPI_MAX, comm.get(), &check->request_),
            "MPI_Iallreduce of a neighborhood's check", comm.get());
  check->self_ = check;
  activate(check.get());
  return check;
}

void ListCheck::advance() {
  if (done_) return;
  int found = 0;
  mpi_check(MPI_Test(&request_, &found, MPI_STATUS_IGNORE), "MPI_Test of a neighborhood's check", comm_.get());
  if (!found) return;
  done_ = true;
  deactivate(this);
  const std::shared_ptr<ListCheck> last = std::move(self_);  // may be the last owner: nothing after this line
}

bool ListCheck::done() {
  if (!done_) {
    const std::shared_ptr<ListCheck> keep = self_;
    advance();
  }
  return done_;
}

ArgumentError ListCheck::error() {
  return {MPI_ERR_TOPOLOGY,
          "neighborhood: the lists of offsets differ between ranks: pass the same list, in the same order, on all "
          "ranks of the communicator"};
}

void ListCheck::rethrow() const {
  if (failed()) throw error();
}

}  // namespace isohalo::detail
