#pragma once
/// The end of checks that an MPI which loses messages would keep from ending.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Ends the whole program, with the name of the check under way and exit code 1, when it lives longer than
/// `seconds`. One rank watches: the checks end on all ranks together, or on none.
class LiveDeadline {
 public:
  LiveDeadline(const Communicator& comm, double seconds);
  ~LiveDeadline();
  LiveDeadline(const LiveDeadline&) = delete;
  LiveDeadline& operator=(const LiveDeadline&) = delete;

  /// What is checked from now on, for the message.
  static void now_at(const std::string& place);

 private:
  [[noreturn]] void give_up() const;

  double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread watch_;
};

}  // namespace isohalo
