#pragma once
/// Do all ranks hold the same? Asked without waiting.

#include <cstdint>
#include <memory>

#include "framework/mpi/meeting.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

/// One comparison of numbers, by a non-blocking allreduce of MPI, which goes on whatever the caller does, and
/// completes in any wait of this library, also when nobody is interested any more.
///
/// MPI pairs the collectives of a communicator by their order: where a rank does not begin one, because it has let
/// go of the object or could not make it, all later ones would be paired wrongly. Therefore a rank that stays away
/// stands in for itself once it hears that others have begun one. In case that it hears it too late, each
/// comparison says which object it is about: where two have met, the ranks of the older object know that somebody
/// is missing, and those of the newer one ask again. Meetings of all ranks make up for what some have not begun.
class Comparison final : public Progressable {
 public:
  /// Collective in order. `serial`: of the object, the later ones larger.
  static std::shared_ptr<Comparison> begin(const Communicator& comm, std::uint64_t serial, std::uint64_t number);

  void advance() override;
  bool done();
  /// When done: another rank did not take part.
  bool missed() const { return values_[2] != -values_[3]; }
  /// When done: all hold the same.
  bool equal() const { return !missed() && values_[0] == -values_[1]; }

  /// Takes part in one for a rank that stays away. Collective in order.
  static void stand_in(const Communicator& comm);
  /// This rank stays away from the object `name`, about which others may begin one.
  static void stay_away(const Communicator& comm, const ObjectName& name);
  /// Stands in where notices say that others have begun one, before this rank goes on to anything of all ranks. The
  /// first time after `stay_away` it waits a moment for notices.
  static void make_up(const Communicator& comm);
  /// Takes part in those that other ranks have begun on `comm` and this one has not; `most`: of all ranks'
  /// `Communicator::comparisons`. Collective.
  static void catch_up(const Communicator& comm, std::int64_t most);

 private:
  Comparison(const Communicator& comm, std::int64_t label, std::int64_t number);
  static std::shared_ptr<Comparison> begun(const Communicator& comm, std::int64_t label, std::int64_t number);
  void post();

  Communicator comm_;
  std::int64_t label_, number_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::int64_t values_[4] = {0, 0, 0, 0};  ///< the largest number and label, each with minus the smallest
  bool done_ = false;
  std::shared_ptr<Comparison> self_;  ///< while it runs
};

}  // namespace isohalo::detail
