#pragma once
/// Do all ranks hold the same? Asked without waiting.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Errors of arguments, handles and sizes are always found, on the rank that makes them. Ranks that call with
/// arguments that differ where they must be equal, in functions that do not communicate, are found only at the
/// check level "communication": on in Debug builds and when the environment has ISOHALO_CHECK=communication, off
/// with ISOHALO_CHECK=local. Equal on all ranks. Throws UsageError for another word. Local.
bool checks_communication();

namespace detail {

/// One comparison of numbers, for what is begun without communication: the answer comes while other things go on.
/// Made where `checks_communication`, not in production: every rank gets the numbers of all.
class EqualityCheck {
 public:
  struct Number {
    std::string name;
    std::uint64_t value;
    bool shown = true;  ///< false for a fingerprint, which tells nobody anything
  };

  /// Starts it. Collective in order.
  EqualityCheck(const Communicator& comm, std::vector<Number> mine);
  EqualityCheck(const EqualityCheck&) = delete;
  EqualityCheck& operator=(const EqualityCheck&) = delete;
  /// Completes it.
  ~EqualityCheck();

  /// Local.
  bool done();
  void wait();
  /// When done: the first number that differs, and the first rank with another than rank 0; nothing when all are
  /// equal. The same on all ranks.
  std::optional<std::string> difference() const;

 private:
  Communicator comm_;
  std::vector<Number> mine_;
  std::vector<std::uint64_t> all_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace detail

}  // namespace isohalo
