#pragma once
/// Waiting without burning the core that the awaited rank needs.
///
/// MPICH busy-polls inside its blocking calls; with more ranks than cores that costs milliseconds a message. Every
/// wait of ours goes through this loop instead: test, spin a little, then give the core away, at last sleep.

#include <mpi.h>

#include <functional>
#include <span>

namespace isohalo {

/// The pause between two tests; one object per wait.
class Backoff {
 public:
  /// `spins`: tests before the core is offered to others (small when ranks outnumber cores).
  explicit Backoff(int spins) : spins_(spins) {}
  void pause();

 private:
  int spins_;
  int misses_ = 0;
};

/// Completes all requests; they become MPI_REQUEST_NULL. Local. Throws MpiError.
void wait_all(std::span<MPI_Request> requests, int spins, const char* place);

/// Polls until `done()` is true. Local.
void wait_until(const std::function<bool()>& done, int spins);

}  // namespace isohalo
