#include "apps/isohalo/live_deadline.hpp"

#include <fmt/format.h>

#include "apps/common/ending.hpp"

namespace isohalo {

namespace {

struct Place {
  std::mutex mutex;
  std::string text = "the set-up";
};

Place& place() {
  static Place p;
  return p;
}

}  // namespace

LiveDeadline::LiveDeadline(const Communicator& comm, double seconds) : seconds_(seconds) {
  if (comm.rank() != 0) return;
  watch_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds_), [this] { return ended_; })) give_up();
  });
}

LiveDeadline::~LiveDeadline() {
  if (!watch_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  watch_.join();
}

void LiveDeadline::now_at(const std::string& text) {
  const std::lock_guard lock(place().mutex);
  place().text = text;
}

void LiveDeadline::give_up() const {
  std::string where;
  {
    const std::lock_guard lock(place().mutex);
    where = place().text;
  }
  // MPI_Abort is not this thread's to call, but the one that might is stuck for good, and the process ends here.
  end_alone(
      MPI_COMM_WORLD, ExitCode::different,
      fmt::format("verify has not ended after {:g} s; rank 0 is in {}. This MPI loses messages, or it is very "
                  "slow: --time-limit gives it more time",
                  seconds_, where));
}

}  // namespace isohalo
