#include "apps/isohalo/live_deadline.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "datatypes/error.hpp"

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
  {
    const std::lock_guard lock(place().mutex);
    fmt::print(
        stderr,
        "isohalo: error: verify has not ended after {:g} s; rank 0 is in {}. This MPI loses messages, or it is "
        "very slow: --time-limit gives it more time\n",
        seconds_, place().text);
  }
  std::fflush(stderr);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // launchers drop what they have not read by then
  // Not this thread's to call, but the one that might is stuck for good, and the process ends here.
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitCode::different));
  std::abort();
}

}  // namespace isohalo
