#include "framework/mpi/equality_check.hpp"

#include <cstdlib>
#include <utility>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

bool checks_communication() {
  static const bool checks = [] {
    const char* const word = std::getenv("ISOHALO_CHECK");
    if (!word) {
#ifdef NDEBUG
      return false;
#else
      return true;
#endif
    }
    const std::string level = word;
    if (level != "local" && level != "communication")
      throw UsageError("ISOHALO_CHECK is \"" + level + "\": use local or communication");
    return level == "communication";
  }();
  return checks;
}

namespace detail {

EqualityCheck::EqualityCheck(const Communicator& comm, std::vector<Number> mine)
    : comm_(comm), mine_(std::move(mine)) {
  const std::size_t n = mine_.size();
  all_.resize(n * static_cast<std::size_t>(comm_.size()));
  for (std::size_t k = 0; k < n; ++k) all_[static_cast<std::size_t>(comm_.rank()) * n + k] = mine_[k].value;
  mpi_check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_.data(), static_cast<int>(n), MPI_UINT64_T,
                           comm_.get(), &request_),
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
  return test_all(std::span(&request_, 1), "MPI_Test of a comparison", comm_.get());
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

}  // namespace detail

}  // namespace isohalo
