#include "apps/isohalo/live_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "apps/common/ending.hpp"
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

namespace {

std::mutex place_mutex;
std::string place_now = "the set-up";  ///< what is checked

[[noreturn]] void give_up(double seconds) {
  std::unique_lock lock(place_mutex);
  const std::string where = place_now;
  lock.unlock();
  // MPI_Abort is not this thread's to call, but the one that might is stuck for good, and the process ends here.
  end_alone(
      MPI_COMM_WORLD, ExitCode::different,
      fmt::format("verify has not ended after {:g} s; rank 0 is in {}. This MPI loses messages, or it is very "
                  "slow: --time-limit gives it more time",
                  seconds, where));
}

}  // namespace

std::jthread watch_deadline(const Communicator& comm, double seconds) {
  if (comm.rank() != 0) return {};
  return std::jthread([seconds](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
    if (!stop.stop_requested()) give_up(seconds);
  });
}

void naming_place(const std::string& place, const std::function<void()>& work) {
  {
    const std::lock_guard lock(place_mutex);
    place_now = place;
  }
  try {
    work();
  } catch (const MpiError& e) {
    throw MpiError(e.mpi_code(), place + ": " + e.what());
  }
}

}  // namespace isohalo
