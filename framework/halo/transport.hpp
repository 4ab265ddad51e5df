#pragma once
/// What moves the cells of halo schedules. Private to framework/halo: use HaloPlan.

#include <memory>
#include <span>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/halo_schedule.hpp"
#include "framework/schedule/rounds.hpp"

namespace isohalo::detail {

/// Takes exchanges through the stages of schedules. Receives of all stages are posted at once; a stage is sent when
/// the ghosts of the one before are in place.
///
/// One schedule serves all arrays of an exchange, or each array has its own; all have as many stages.
template <int D>
class HaloTransport : public RoundExecutor<HaloTransport<D>> {
 public:
  HaloTransport(const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules)
      : domain_(domain), first_tag_(first_tag), schedules_(std::move(schedules)) {}

  /// Local; the arrays fit and are as many and of the same element sizes as the transport was made for. A start
  /// that may wait is followed by `finish` at once, so that messages may as well be sent there.
  void start(std::span<const ErasedArray<D>> arrays, bool may_wait = false) {
    may_wait_ = may_wait;
    arrays_.assign(arrays.begin(), arrays.end());
    this->launch();
    if (needed_after_start()) this->activate(this);
  }
  void finish() { this->wait(domain_.comm().spins()); }
  /// Written straight into other ranks' ghosts by the latest exchange.
  virtual std::int64_t bytes_written_directly() const { return 0; }

 protected:
  virtual void post_receives() = 0;
  virtual void send(std::size_t stage) = 0;
  /// Ghosts of the stage that are this rank's own cells.
  virtual void copy(std::size_t stage) = 0;
  /// Puts in place what has arrived; true when all ghosts of the stage are.
  virtual bool received(std::size_t stage) = 0;
  /// Is the memory of all that was sent free again?
  virtual bool left() = 0;
  /// True when other ranks may wait for what this one does after `start`.
  virtual bool needed_after_start() const { return stages() > 1; }

  std::size_t stages() const { return schedules_.front().stages.size(); }
  /// Which schedule serves array f.
  std::size_t schedule_of(std::size_t f) const { return schedules_.size() == 1 ? 0 : f; }
  /// Senders do not know where cells go in ghosts that repeat the grid.
  bool repeats(std::size_t f) const { return schedules_[schedule_of(f)].stages.back().fill != nullptr; }
  MPI_Comm comm() const { return domain_.comm().get(); }

  CartesianDomain<D> domain_;
  int first_tag_;
  std::vector<HaloSchedule<D>> schedules_;
  std::vector<ErasedArray<D>> arrays_;
  bool may_wait_ = false;

 private:
  friend class RoundExecutor<HaloTransport<D>>;
  // Round k awaits stage k - 1 and sends stage k.
  std::size_t rounds() const { return stages() + 1; }
  void begin() { post_receives(); }
  bool arrived(std::size_t round) { return round == 0 || received(round - 1); }
  void enter(std::size_t round) {
    if (round == stages()) return;
    send(round);
    copy(round);
  }
};

}  // namespace isohalo::detail
