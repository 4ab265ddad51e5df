#pragma once
/// Do all ranks hold the same list?

#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "framework/mpi/comparison.hpp"
#include "framework/neighborhood/neighbor_call.hpp"

namespace isohalo::detail {

/// One comparison of fingerprints.
class ListCheck {
 public:
  /// Without waiting. Collective in order. `listen` throws when a rank will not take part.
  ListCheck(std::shared_ptr<Comparison> comparison, std::function<void()> listen)
      : comparison_(std::move(comparison)), listen_(std::move(listen)) {}
  /// Leaves the largest of all ranks' values.
  using Meet = std::function<void(std::span<std::int64_t>)>;
  /// At once, by a meeting of all ranks: on two ranks a third of the time. Collective.
  ListCheck(std::uint64_t fingerprint, const Meet& meet);

  /// For a rank that waits for it: throws ArgumentError when that is in vain. Local.
  void listen();
  bool done();
  bool passed() { return done() && equal(); }
  bool failed() { return done() && !equal() && !missed(); }
  /// What is wrong when the lists differ (MPI_ERR_TOPOLOGY).
  static ArgumentError error();
  /// Throws ArgumentError when the lists differ, or not all ranks took part.
  void rethrow();

 private:
  bool equal() const { return comparison_ ? comparison_->equal() : equal_; }
  bool missed() const { return comparison_ && comparison_->missed(); }

  std::shared_ptr<Comparison> comparison_;
  std::function<void()> listen_;
  std::chrono::steady_clock::time_point missed_since_{};
  bool equal_ = false;
};

}  // namespace isohalo::detail
