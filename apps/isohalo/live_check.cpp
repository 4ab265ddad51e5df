#include "apps/isohalo/live_check.hpp"

#include <algorithm>

#include "apps/isohalo/live_deadline.hpp"
#include "datatypes/error.hpp"

namespace isohalo {

LiveRow& LiveReport::add(const std::string& group, const std::string& name) {
  rows_.push_back(LiveRow{group, name, 0, 0, 0, {}});
  return rows_.back();
}

bool LiveReport::good() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const LiveRow& r) { return r.wrong == 0; });
}

bool LiveReport::has(const std::string& name) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const LiveRow& r) { return r.name == name; });
}

void LiveReport::gather(const Communicator& comm) {
  std::vector<std::int64_t> sums;
  for (const auto& r : rows_) sums.insert(sums.end(), {r.checked, r.wrong});
  comm.allreduce(sums.data(), static_cast<int>(sums.size()), MPI_INT64_T, MPI_SUM);
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    LiveRow& r = rows_[k];
    r.checked = sums[2 * k];
    r.wrong = sums[2 * k + 1];
    if (r.wrong == 0) continue;
    const std::int64_t earliest = comm.min(r.first_case);
    const std::int64_t rank = comm.min(r.first_case == earliest ? comm.rank() : comm.size());
    comm.broadcast(r.first, static_cast<int>(rank));
    r.first_case = earliest;
  }
}

void naming_place(const std::string& place, const std::function<void()>& work) {
  LiveDeadline::now_at(place);
  try {
    work();
  } catch (const MpiError& e) {
    throw MpiError(e.mpi_code(), place + ": " + e.what());
  }
}

}  // namespace isohalo
