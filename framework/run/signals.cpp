#include "framework/run/signals.hpp"

#include <csignal>
#include <ctime>

namespace isohalo {

namespace {

// What a handler may touch.
volatile std::sig_atomic_t stop_requested = 0;
volatile std::sig_atomic_t checkpoint_requested = 0;
volatile std::sig_atomic_t first_second = 0;

std::sig_atomic_t now_s() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::sig_atomic_t>(t.tv_sec);
}

extern "C" void isohalo_on_signal(int signal) {
  if (signal == SIGUSR1) {
    checkpoint_requested = 1;
    return;
  }
  if (stop_requested == 0) {
    stop_requested = signal;
    first_second = now_s();
  } else if (now_s() - first_second >= 2) {  // launchers may deliver the same one twice
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

constexpr int kWatched[] = {SIGTERM, SIGINT, SIGUSR1};
struct sigaction former[3];  ///< what they did before

}  // namespace

SignalWatch::SignalWatch() {
  stop_requested = 0;
  checkpoint_requested = 0;
  struct sigaction action {};
  action.sa_handler = isohalo_on_signal;
  action.sa_flags = SA_RESTART;  // I/O in progress goes on
  sigemptyset(&action.sa_mask);
  for (int k = 0; k < 3; ++k) sigaction(kWatched[k], &action, &former[k]);
}

SignalWatch::~SignalWatch() {
  for (int k = 0; k < 3; ++k) sigaction(kWatched[k], &former[k], nullptr);
}

int SignalWatch::stop_signal() const {
  return stop_requested;
}

bool SignalWatch::take_checkpoint_request() {
  const bool asked = checkpoint_requested != 0;
  if (asked) checkpoint_requested = 0;
  return asked;
}

const char* signal_name(int signal) {
  return signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : signal == SIGUSR1 ? "SIGUSR1" : "a signal";
}

}  // namespace isohalo
