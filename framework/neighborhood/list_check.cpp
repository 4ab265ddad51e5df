#include "framework/neighborhood/list_check.hpp"

#include <algorithm>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

ListCheck::ListCheck(const Communicator& comm, std::uint64_t fingerprint) : comm_(comm), done_(comm.size() == 1) {
  // Two signed maxima: MPICH compares unsigned ones as signed numbers.
  values_[0] = static_cast<std::int64_t>(fingerprint >> 2);
  values_[1] = -values_[0];
}

std::shared_ptr<ListCheck> ListCheck::now(const Communicator& comm, std::uint64_t fingerprint) {
  std::shared_ptr<ListCheck> check(new ListCheck(comm, fingerprint));
  const int p = comm.size(), rank = comm.rank(), tag = comm.take_passing_tags(1);
  std::int64_t(&most)[2] = check->values_, theirs[2];
  for (int distance = 1; distance < p; distance *= 2) {
    MPI_Request requests[2];
    mpi_check(MPI_Irecv(theirs, 2, MPI_INT64_T, (rank + p - distance) % p, tag, comm.get(), &requests[0]),
              "MPI_Irecv of a neighborhood's check", comm.get());
    mpi_check(MPI_Isend(most, 2, MPI_INT64_T, (rank + distance) % p, tag, comm.get(), &requests[1]),
              "MPI_Isend of a neighborhood's check", comm.get());
    comm.wait(requests, "a neighborhood's check");
    for (int k = 0; k < 2; ++k) most[k] = std::max(most[k], theirs[k]);
  }
  check->done_ = true;
  return check;
}

std::shared_ptr<ListCheck> ListCheck::begin(const Communicator& comm, std::uint64_t fingerprint) {
  std::shared_ptr<ListCheck> check(new ListCheck(comm, fingerprint));
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
          "ranks of the communicator (and the cost of a message on all or none)"};
}

void ListCheck::rethrow() const {
  if (failed()) throw error();
}

}  // namespace isohalo::detail
