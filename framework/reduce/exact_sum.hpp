#pragma once
/// One exact sum over all ranks.

#include <memory>
#include <span>
#include <string>

#include "datatypes/superaccumulator.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/reduce/allreduce.hpp"

namespace isohalo::detail {

/// Non-blocking and persistent: `start`, `test` until true, `value`. By a schedule, whose messages have a tag of
/// their own: ranks need not start several such sums in the same order, as collectives of MPI would.
class ExactSum {
 public:
  explicit ExactSum(const Communicator& comm) : comm_(comm) {}
  /// How the limbs travel; to be called before the first start. Collective. Throws as ScheduledAllreduce.
  void use_schedule(const std::string& text, const Planning& planning);
  ScheduleChoice choice() const { return scheduled_ ? scheduled_->choice() : ScheduleChoice{}; }
  /// Forgets this rank's addends; adds one to them, in any order. Local.
  void clear() { sum_.clear(); }
  void add(double addend) { sum_.add(addend); }
  /// Starts the sum of limbs. Collective.
  void start();
  /// All three.
  void start(std::span<const double> addends) {
    clear();
    for (const double v : addends) add(v);
    start();
  }
  bool test() { return scheduled_->test(); }
  double value() { return sum_.value(); }

 private:
  Communicator comm_;
  Superaccumulator sum_;
  std::unique_ptr<ScheduledAllreduce> scheduled_;
};

}  // namespace isohalo::detail
