#pragma once
/// The engines that move the cells of schedules. Private to framework/halo: use HaloPlan.

#include <memory>
#include <set>
#include <span>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/farewell.hpp"
#include "framework/halo/halo_schedule.hpp"
#include "framework/halo/strided_copy.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

constexpr std::size_t kMaxArrays = 16;  // message tags per plan

/// Takes an exchange through its stages. Receives of all stages are posted at once; a stage is sent when the ghosts
/// of the one before are in place. An exchange that needs this rank after `start` is active in every wait of the
/// process, so two of them may be finished in different orders on different ranks.
///
/// One schedule serves all arrays of an exchange, or each array has its own; all have as many stages.
template <int D>
class HaloMover : public Progressable {
 public:
  HaloMover(const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules,
            ExchangeStores stores);

  /// Both local; the arrays fit and are as many and of the same element sizes as the mover was made for. A patient
  /// start is followed by `finish` at once, so that messages may as well be sent there.
  void start(std::span<const ErasedArray<D>> arrays, bool patient = false);
  /// Throws UsageError, and is of no use any more, when a rank has said farewell.
  void finish(Farewell* farewell = nullptr);
  bool in_flight() const { return in_flight_; }
  /// Withdraws the receives of an exchange that will not be finished; this is of no use any more then. False when
  /// MPI or other ranks may still use memory that this owns. Local.
  virtual bool withdraw() noexcept = 0;
  /// After that, while the arrays are there: true when none but the ranks that are `gone` may still read or write
  /// them. Local.
  virtual bool let_go(std::span<const int> gone) = 0;
  /// Adds the ranks to which this one sends, or from which it receives.
  void add_peers(std::set<int>& peers) const;
  /// Written straight into other ranks' ghosts by the latest exchange.
  virtual std::int64_t bytes_pushed() const { return 0; }
  void advance() final { proceed(); }

 protected:
  virtual void post_receives() = 0;
  virtual void send(std::size_t stage) = 0;
  /// Puts in place what has arrived; true when all ghosts of the stage are.
  virtual bool received(std::size_t stage) = 0;
  /// True when all that was sent has left.
  virtual bool sent() = 0;
  /// True when other ranks may wait for what this one does after `start`.
  virtual bool needed_after_start() const { return stages() > 1; }

  std::size_t stages() const { return schedules_.front().stages.size(); }
  /// Senders do not know where cells go in ghosts that repeat the grid.
  bool repeats(std::size_t f) const { return schedules_[schedule_of(f)].stages.back().fill != nullptr; }
  /// Which schedule serves array f.
  std::size_t schedule_of(std::size_t f) const { return schedules_.size() == 1 ? 0 : f; }

  CartesianDomain<D> domain_;
  int first_tag_;
  std::vector<HaloSchedule<D>> schedules_;
  ExchangeStores stores_;
  std::vector<ErasedArray<D>> arrays_;
  bool patient_ = false;

 private:
  void enter(std::size_t stage);
  bool proceed();

  std::vector<std::vector<BoxCopier<D>>> copiers_;  ///< by stage and schedule
  std::size_t stage_ = 0;
  bool in_flight_ = false;
};

/// Withdraws receives; they become MPI_REQUEST_NULL. Local, but waits for messages that are half way in.
void withdraw_receives(std::span<MPI_Request> receives) noexcept;

/// Zero copy: MPI datatypes on both sides, made once per schedule and array layout and found again.
template <int D>
class DatatypeMover final : public HaloMover<D> {
 public:
  using HaloMover<D>::HaloMover;
  ~DatatypeMover() override;

 private:
  struct Layout {
    std::size_t schedule;
    std::int64_t bytes, pitch;
    Datatype (*element)();
    Index<D> stride;
    std::vector<std::vector<Datatype>> send, receive;  ///< by stage and message
  };

  void post_receives() override;
  void send(std::size_t stage) override;
  bool received(std::size_t stage) override;
  bool sent() override;
  bool withdraw() noexcept override;
  bool let_go(std::span<const int> gone) override;
  const Layout& layout_of(std::size_t array);
  Datatype type_of(const HaloMessage<D>& message, const ErasedArray<D>& array) const;

  std::vector<std::unique_ptr<Layout>> layouts_;
  std::vector<std::vector<MPI_Request>> receives_;  ///< by stage
  std::vector<MPI_Request> sends_;
  std::vector<int> send_peers_;
};

}  // namespace isohalo::detail
