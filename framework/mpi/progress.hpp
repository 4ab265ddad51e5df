#pragma once
/// Waiting without burning the core that the awaited rank needs.
///
/// MPICH busy-polls inside its blocking calls; with more ranks than cores that costs milliseconds a message. Every
/// wait of ours goes through this loop instead: test, spin a little, then give the core away, at last sleep.

#include <mpi.h>

#include <functional>
#include <span>

namespace isohalo {

/// An operation of several phases, in which a later phase can start only when an earlier one has arrived. Neighbors
/// may depend on this rank's part of one operation while this rank waits for another: every wait of ours therefore
/// advances all active operations of the process.
class Progressable {
 public:
  Progressable() = default;
  Progressable(const Progressable&) = delete;
  Progressable& operator=(const Progressable&) = delete;
  virtual ~Progressable() { deactivate(this); }

  /// Posts whatever has become possible; never waits. May deactivate itself and other operations. Local.
  virtual void advance() = 0;

  static void activate(Progressable* operation);
  /// Does nothing for an operation that is not active.
  static void deactivate(Progressable* operation) noexcept;
  static void advance_all();
  /// Is any operation of the process active?
  static bool any_active() noexcept;
};

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

/// Completes all requests; they become MPI_REQUEST_NULL. Local. Throws MpiError.
void wait_all(std::span<MPI_Request> requests, int spins, const char* place);

/// MPI_Comm_dup, except that it waits so. Collective. Throws MpiError.
MPI_Comm duplicate(MPI_Comm comm, int spins);

/// Polls until `done()` is true. Local.
void wait_until(const std::function<bool()>& done, int spins);

}  // namespace isohalo
