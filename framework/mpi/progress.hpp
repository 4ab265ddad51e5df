#pragma once
/// Waiting without burning the core that the awaited rank needs.
///
/// MPICH busy-polls inside its blocking calls; with more ranks than cores that costs milliseconds a message. Every
/// wait of ours goes through this loop instead: test, spin a little, then give the core away, at last sleep.

#include <mpi.h>

#include <functional>
#include <span>

#include "datatypes/mpi_check.hpp"

namespace isohalo {

/// The pause between two tests; one object per wait. The first sleep of a thread sets its timer slack to 1 us.
class Backoff {
 public:
  /// `spins`: tests before the core is offered to others (small when ranks outnumber cores).
  explicit Backoff(int spins) : spins_(spins) {}
  void pause();
  /// The same, but returns false instead of sleeping when that is due, for callers that can be woken up.
  bool pause_awake();

 private:
  int spins_;
  int misses_ = 0;
};

/// What is started, goes on in small parts and ends: an exchange, a reduction, a collective. In one of several
/// stages a later one can start only when an earlier one has arrived, and other ranks may depend on this rank's
/// part of one operation while this rank waits for another: every wait of ours therefore moves all active
/// operations of the process on, and operations may be waited for in different orders on different ranks.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() { deactivate(this); }

  /// Goes on as far as messages have arrived; true when it has ended. Never waits. Local.
  bool test() {
    if (!proceed()) return false;
    deactivate(this);
    return true;
  }
  /// Waits for its end, with back-off. Local.
  void wait(int spins) {
    deactivate(this);
    for (Backoff backoff(spins); !proceed();) pause(backoff);
  }

  static void advance_all();
  /// Is any operation of the process active?
  static bool any_active() noexcept;

 protected:
  /// As `test`.
  virtual bool proceed() = 0;
  /// Between two tests that were in vain.
  virtual void pause(Backoff& backoff) { backoff.pause(); }

  static void activate(Operation* operation);
  /// Does nothing for an operation that is not active.
  static void deactivate(Operation* operation) noexcept {
    if (operation->active_) remove(operation);
  }

 private:
  static void remove(Operation* operation) noexcept;
  bool active_ = false;
};

/// Completes all requests; they become MPI_REQUEST_NULL. Local. Throws MpiError.
void wait_all(std::span<MPI_Request> requests, int spins, const char* place);

/// Are they complete? Then they become MPI_REQUEST_NULL. Never waits. Local. Throws MpiError.
inline bool test_all(std::span<MPI_Request> requests, const char* place, MPI_Comm comm = MPI_COMM_NULL) {
  if (requests.empty()) return true;
  int done = 0;
  const int rc = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  if (rc != MPI_SUCCESS) mpi_check(rc, place, comm);
  return done != 0;
}

/// Lets MPI move messages on. For waits on shared memory, which does not: a rank that we wait for may itself wait
/// for a message of ours that MPI still has. Local. Throws MpiError.
void move_messages(MPI_Comm comm);

/// MPI_Comm_dup, except that it waits so. Collective. Throws MpiError.
MPI_Comm duplicate(MPI_Comm comm, int spins);

/// Polls until `done()` is true. Local.
void wait_until(const std::function<bool()>& done, int spins);

}  // namespace isohalo
