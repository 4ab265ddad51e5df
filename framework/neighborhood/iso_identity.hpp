#pragma once
/// What all ranks know an IsoComm by, also those on which it could not be made, or is no more. Private to
/// framework/neighborhood.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/mpi/meeting.hpp"
#include "framework/neighborhood/neighbor_call.hpp"

namespace isohalo::detail {

/// Does not keep the communicator.
class IsoIdentity {
 public:
  /// Collective in order.
  explicit IsoIdentity(const Communicator& comm) : tags(comm), name_(comm) {}

  TagSeries tags;            ///< of its operations
  bool check_begun = false;  ///< of the lists of all ranks
  bool compares = false;     ///< it is made without a meeting
  bool deserted = false;     ///< this rank has let go, and so have the others, as far as it knows

  /// Waits for all ranks, and leaves the largest of all ranks' values. Collective. Throws ArgumentError, on all
  /// ranks that come to it, when one will not.
  void meet(const Communicator& comm, std::span<std::int64_t> most);
  /// For a rank that waits for the check of the lists outside a meeting: throws ArgumentError when another will not
  /// take part. Local.
  void listen(const Communicator& comm);
  /// Throws ArgumentError when some rank is known to have stayed away: operations cannot be in step any more.
  void refuse_if_missing() const {
    if (missing_) throw ArgumentError(*missing_);
  }
  /// This rank takes part in nothing any more: tells those that wait for it. Local.
  void stay_away(const Communicator& comm, const ArgumentError& error);

 private:
  void tell(const Communicator& comm, const ArgumentError& error) noexcept;
  void hear(const Communicator& comm, bool meeting);

  ObjectName name_;
  std::uint32_t meetings_ = 0;
  std::vector<Notice> heard_;
  std::unique_ptr<ArgumentError> missing_;  ///< why there can be no meeting
};

}  // namespace isohalo::detail
