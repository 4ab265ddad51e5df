#include "framework/neighborhood/iso_identity.hpp"

#include <chrono>
#include <string>

#include "framework/mpi/comparison.hpp"

namespace isohalo::detail {

void IsoIdentity::hear(const Communicator& comm, bool meeting) {
  while (!missing_) {
    auto notice = find_notice(comm, name_.notices, name_.serial);
    if (!notice) break;
    heard_.push_back(std::move(*notice));
  }
  for (const Notice& n : heard_) {
    const auto number = static_cast<std::uint32_t>(n.sent & ~kCompares);
    if (missing_ || number > meetings_ || (meeting && is_question(n))) continue;
    if ((n.sent & kCompares) && !check_begun) {
      check_begun = compares = true;
      Comparison::stand_in(comm);
    }
    tell(comm, {is_question(n) ? MPI_ERR_ARG : n.mpi_class, n.text});  // others wait for this one in vain, too
  }
  refuse_if_missing();
}

void IsoIdentity::listen(const Communicator& comm) {
  hear(comm, false);
}

void IsoIdentity::meet(const Communicator& comm, std::span<std::int64_t> most) {
  refuse_if_missing();
  const auto begin = std::chrono::steady_clock::now();
  bool asked = check_begun;
  detail::meet(comm, name_, meetings_, most, [&] {
    hear(comm, true);
    if (asked || std::chrono::steady_clock::now() < begin + kLongMeeting) return;
    asked = true;
    send_questions(comm, name_, partners(comm), meetings_,
                   "neighborhood: its first operation is blocking on some ranks and started on others: begin the "
                   "same one on all of them");
  });
  ++meetings_;
}

void IsoIdentity::stay_away(const Communicator& comm, const ArgumentError& error) {
  tell(comm, error);
  if (!check_begun) Comparison::stay_away(comm, name_);
}

void IsoIdentity::tell(const Communicator& comm, const ArgumentError& error) noexcept {
  const std::string text = error.what();
  if (!missing_) missing_ = std::make_unique<ArgumentError>(error);
  send_notices(comm, name_, partners(comm), error.mpi_class(), meetings_ | (compares ? kCompares : 0),
               text.starts_with("rank ") ? text : "rank " + std::to_string(comm.rank()) + ": " + text);
}

}  // namespace isohalo::detail
