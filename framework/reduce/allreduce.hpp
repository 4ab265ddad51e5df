#pragma once
/// A plain allreduce by recursive multiplying, for latency-bound MPI_Allreduce calls with any type and operation.

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/reduce/schedule_choice.hpp"
#include "framework/schedule/schedule.hpp"
#include "framework/schedule/stages.hpp"

namespace isohalo {

/// Combines `count` elements of `type` by `op` over all ranks; every rank gets the same bits, and the same ones in
/// every run on as many ranks: contributions are combined in a fixed order, that of the ranks wherever the schedule
/// keeps it (see `keeps_rank_order`). Persistent and non-blocking. For results that do not depend on the number of
/// ranks either, see TreeReducer and ArrayReducer. Source: Ruefenacht, Bull, Booth 2017, section 4.
class ScheduledAllreduce final : private detail::StageExecutor<ScheduledAllreduce> {
 public:
  /// `schedule`: encoded form (see `parse_stages`), or "auto": as `planning` says, by the cost model. `type` is any
  /// committed datatype and `op` any operation that MPI_Reduce_local takes for it, both alive as long as this
  /// object. Collective. Throws UsageError on all ranks: for a schedule that does not fit, a dissemination (sums
  /// would count twice), one that does not keep rank order when `op` does not commute, a negative count, or
  /// arguments that differ between ranks. Of types and operations only the size and whether they commute are
  /// compared: that they are the same on all ranks is up to the caller.
  ScheduledAllreduce(MPI_Comm user, int count, MPI_Datatype type, MPI_Op op, const std::string& schedule = "auto",
                     const Planning& planning = {});

  /// In place: `in_out` has `count` elements of `type` in host memory. Collective; nothing is allocated.
  void reduce(void* in_out);
  /// The same in parts; `in_out` must stay alone until `test` returns true or `wait` returns. `start` is
  /// collective, the others local. Once started it goes on in every wait of this library, so several operations
  /// may be waited for in different orders on different ranks. Throws UsageError where one is in flight.
  void start(void* in_out);
  bool test() { return !(in_flight_ = !Operation::test()); }
  void wait() {
    in_flight_ = false;
    Operation::wait(comm_.spins());
  }

  /// The schedule, what chose it and by which times.
  const ScheduleChoice& choice() const { return choice_; }

 private:
  void take(void* in_out);
  void ask_mpi();
  Schedule parse(const std::string& text) const;
  void choose(const Planning& planning);
  friend class detail::StageExecutor<ScheduledAllreduce>;
  std::size_t stages() const { return stages_.size(); }
  void begin() {}
  bool arrived(std::size_t stage);
  void enter(std::size_t stage);
  bool left() { return true; }
  void* received(std::size_t k) { return buffer_.data() + k * room_ - true_lower_; }
  void combine(const StageActions& actions);

  Communicator comm_;
  int count_;
  MPI_Datatype type_;
  MPI_Op op_;
  int tag_;
  Schedule schedule_;
  ScheduleChoice choice_;
  MPI_Aint true_lower_ = 0;
  std::size_t bytes_ = 0;  // of the values of an array
  std::size_t room_ = 0;   // from the first byte to the last, a multiple of 64
  bool dense_ = false;     // no gaps: a plain copy will do
  bool commutes_ = false;
  std::vector<StageActions> stages_;
  std::vector<std::byte> buffer_;  // what arrives in a stage, and one array more
  std::vector<MPI_Request> requests_;
  void* in_out_ = nullptr;
  bool in_flight_ = false;
};

}  // namespace isohalo
