#include "framework/mpi/equality_check.hpp"

#include <utility>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

EqualityCheck::EqualityCheck(const Communicator& comm, std::vector<Number> mine)
    : comm_(comm), mine_(std::move(mine)) {
  for (const Number& n : mine_) sent_.push_back(n.value);
  const int count = static_cast<int>(sent_.size());
  all_.resize(sent_.size() * static_cast<std::size_t>(comm_.size()));
  mpi_check(
      MPI_Iallgather(sent_.data(), count, MPI_UINT64_T, all_.data(), count, MPI_UINT64_T, comm_.get(), &request_),
      "MPI_Iallgather of what ranks compare", comm_.get());
}

EqualityCheck::~EqualityCheck() {
  if (request_ == MPI_REQUEST_NULL || !mpi_is_active()) return;
  try {
    wait();
  } catch (const Error&) {  // reported to those who asked
  }
}

bool EqualityCheck::done() {
  int done = 0;
  mpi_check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test of a comparison", comm_.get());
  return done;
}

void EqualityCheck::wait() {
  comm_.wait(request_, "comparison");
}

std::optional<std::string> EqualityCheck::difference() const {
  const std::size_t n = mine_.size();
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t r = 1; r * n < all_.size(); ++r) {
      const std::uint64_t first = all_[k], other = all_[r * n + k];
      if (first == other) continue;
      const std::string where = " on rank " + std::to_string(r);
      return mine_[k].shown ? mine_[k].name + " is " + std::to_string(first) + " on rank 0 and " +
                                  std::to_string(other) + where
                            : mine_[k].name + " is another" + where + " than on rank 0";
    }
  return std::nullopt;
}

}  // namespace isohalo::detail
