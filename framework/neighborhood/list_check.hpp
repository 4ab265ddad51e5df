#pragma once
/// Do all ranks hold the same list? Asked once, without waiting.

#include <memory>

#include "framework/mpi/communicator.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/neighborhood/neighbor_call.hpp"

namespace isohalo::detail {

/// One comparison of fingerprints.
class ListCheck final : public Progressable {
 public:
  /// By a non-blocking allreduce of MPI, which goes on whatever the caller does, and completes in any wait of this
  /// library, also when nobody is interested any more. Collective in order.
  static std::shared_ptr<ListCheck> begin(const Communicator& comm, std::uint64_t fingerprint);
  /// At once, by dissemination in ceil(log2 p) rounds: on two ranks a third of the time. Collective.
  static std::shared_ptr<ListCheck> now(const Communicator& comm, std::uint64_t fingerprint);

  void advance() override;
  bool done();
  bool passed() { return done() && !failed(); }
  bool failed() const { return done_ && values_[0] != -values_[1]; }
  /// What is wrong when the lists differ (MPI_ERR_TOPOLOGY).
  static ArgumentError error();
  /// Throws it when they do.
  void rethrow() const;

 private:
  ListCheck(const Communicator& comm, std::uint64_t fingerprint);

  Communicator comm_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::int64_t values_[2] = {0, 0};  ///< the largest fingerprint, and minus the smallest
  bool done_ = false;
  std::shared_ptr<ListCheck> self_;  ///< while it runs
};

}  // namespace isohalo::detail
