#pragma once
/// One exact sum over all ranks.

#include <mpi.h>

#include <memory>
#include <span>
#include <string>

#include "datatypes/superaccumulator.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/reduce/allreduce.hpp"

namespace isohalo::detail {

/// Non-blocking and persistent: `start`, `test` until true, `value`.
class ExactSum {
 public:
  explicit ExactSum(const Communicator& comm) : comm_(comm) {}
  /// The schedule that the limbs take, "auto": MPI's own unless `planning` asks for one of ours. By MPI's own the
  /// result comes to rank `root` alone (-1: all); a schedule is an allreduce. Collective. Throws as
  /// ScheduledAllreduce.
  void use_schedule(const std::string& text, const Planning& planning, int root);
  ScheduleChoice choice() const { return scheduled_ ? scheduled_->choice() : ScheduleChoice{.by = "MPI"}; }
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
  bool test();
  double value() { return sum_.value(); }

 private:
  Communicator comm_;
  Superaccumulator sum_;
  std::unique_ptr<ScheduledAllreduce> scheduled_;
  int root_ = -1;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace isohalo::detail
