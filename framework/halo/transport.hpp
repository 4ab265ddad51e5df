#pragma once
/// What moves the cells of halo schedules. Private to framework/halo: use HaloPlan.

#include <memory>
#include <span>
#include <vector>

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/halo_schedule.hpp"
#include "framework/halo/stores.hpp"
#include "framework/schedule/stages.hpp"

namespace isohalo::detail {

/// What a transport is made for. A schedule serves all arrays of an exchange that need the same cells; all have as
/// many stages.
template <int D>
struct HaloTask {
  CartesianDomain<D> domain;
  int tag;
  std::vector<HaloSchedule<D>> schedules;
  std::vector<std::size_t> schedule_of;     ///< by array
  std::vector<std::int64_t> element_bytes;  ///< of the arrays of every exchange
  ExchangeStores stores;                    ///< of copies by the host
};

/// Takes exchanges through the stages of schedules. Receives of all stages are posted at once, before anything is
/// sent; a stage is sent when the ghosts of the one before are in place and its messages have left.
template <int D>
class HaloTransport : public StageExecutor<HaloTransport<D>> {
 public:
  explicit HaloTransport(HaloTask<D> task) : task_(std::move(task)), receives_(stages()) {}

  /// Local; the arrays fit and are as many and of the same element sizes as the transport was made for. A start
  /// that may wait is followed by `finish` at once, so that messages may as well be sent there.
  void start(std::span<const ErasedArray<D>> arrays, bool may_wait = false) {
    may_wait_ = may_wait;
    arrays_.assign(arrays.begin(), arrays.end());
    this->launch();
    if (needed_after_start()) this->activate(this);
  }
  void finish() { this->wait(task_.domain.comm().spins()); }
  /// From now on `finish` need not wait for kernels.
  void run_on() { fences_ = false; }

 protected:
  virtual void post_receives() = 0;
  virtual void send(std::size_t stage) = 0;
  /// Ghosts of the stage that are this rank's own cells.
  virtual void copy(std::size_t stage) = 0;
  /// Puts in place what has arrived; true when all ghosts of the stage are.
  virtual bool received(std::size_t stage) { return test_all(receives_[stage], "halo exchange", comm()); }
  /// Is the memory of all that was sent free again?
  virtual bool left() {
    if (!test_all(sends_, "halo exchange", comm())) return false;
    sends_.clear();
    return true;
  }
  /// True when other ranks may wait for what this one does after `start`.
  virtual bool needed_after_start() const { return stages() > 1; }

  std::size_t stages() const { return task_.schedules.front().size(); }
  /// Which schedule serves array f.
  std::size_t schedule_of(std::size_t f) const { return task_.schedule_of[f]; }
  const HaloStage<D>& stage_of(std::size_t f, std::size_t stage) const {
    return task_.schedules[schedule_of(f)][stage];
  }
  MPI_Comm comm() const { return task_.domain.comm().get(); }

  /// One message by MPI. Both ends list their messages in the same order, stage by stage, so one tag is enough.
  void receive_from(int peer, void* data, MPI_Count count, MPI_Datatype type, MPI_Request& request) {
    mpi_check(mpi::irecv(data, count, type, peer, task_.tag, comm(), &request), "MPI_Irecv in a halo exchange",
              comm());
  }
  void send_to(int peer, const void* data, MPI_Count count, MPI_Datatype type) {
    mpi_check(mpi::isend(data, count, type, peer, task_.tag, comm(), &sends_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend in a halo exchange", comm());
  }

  HaloTask<D> task_;
  std::vector<ErasedArray<D>> arrays_;
  std::vector<std::vector<MPI_Request>> receives_;  ///< by stage
  std::vector<MPI_Request> sends_;
  bool may_wait_ = false, fences_ = true;

 private:
  friend class StageExecutor<HaloTransport<D>>;
  void begin() {
    received_ = false;
    post_receives();
  }
  /// The messages of the stage before must have left, too: MPI moves long ones only while this rank calls it, and
  /// what the stage copies would keep their receivers waiting.
  bool arrived(std::size_t stage) {
    if (stage == 0) return true;
    received_ = received_ || received(stage - 1);
    if (!received_ || (stage < stages() && !HaloTransport::left())) return false;
    received_ = false;
    return true;
  }
  void enter(std::size_t stage) {
    if (stage == stages()) return;
    send(stage);
    copy(stage);
  }

  bool received_ = false;  ///< the stage before
};

/// Makes what moves the cells of arrays that the host need not reach; one for each memory space: arrays with the
/// same one can be exchanged together. Fences. Local. (Here without Kokkos, which kernel_transport.hpp needs.)
template <int D>
struct KernelCopies {
  std::unique_ptr<HaloTransport<D>> (*make)(HaloTask<D> task);
};

}  // namespace isohalo::detail
