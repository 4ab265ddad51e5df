/// The end of a collective that cannot go on.

#include <algorithm>
#include <list>
#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/neighbor_operation.hpp"

namespace isohalo::detail {

namespace {

/// Buffers of messages that nobody has taken: MPI may still read them. There are some only after errors.
std::list<std::vector<std::byte>>& given_up() {
  static std::list<std::vector<std::byte>> buffers;
  return buffers;
}

}  // namespace

NeighborOperation::~NeighborOperation() {
  if (!active_ || !mpi_is_active()) return;
  withdraw_receives();
  let_go();
}

void NeighborOperation::look_for_stop() {
  const auto notice = find_stop(comm_, ticket_);
  if (!notice) return;
  notices_.emplace_back(notice->peer, notice->sent);
  throw ArgumentError(notice->mpi_class, notice->text);
}

/// A rank that waits long asks whether another has given up, or executes this operation in another way, which
/// happens when their arguments do not fit together.
void NeighborOperation::look_for_trouble() {
  look_for_stop();
  if (check_) check_->listen();
  if (finished_) return;
  int found = 0;
  MPI_Status status;
  const Algorithm mine = itinerary_->algorithm;
  for (const Algorithm a : {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic})
    for (const bool per_block : {false, true}) {
      if (a == mine && (a != Algorithm::direct || phases_.empty())) continue;
      if (a == mine) {  // some peers may send per block and others not: only a peer of the other kind is trouble
        for (const Message* m : receiving_) {
          if (m->tag == NeighborTags::data(a, per_block)) continue;
          mpi_check(MPI_Iprobe(m->peer, ticket_.first_tag + NeighborTags::data(a, per_block), comm_.get(), &found,
                               &status),
                    "MPI_Iprobe");
          if (found) break;
        }
      } else {
        mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, ticket_.first_tag + NeighborTags::data(a, per_block), comm_.get(),
                             &found, &status),
                  "MPI_Iprobe");
      }
      if (found)
        throw ArgumentError(
            MPI_ERR_TRUNCATE,
            "neighborhood: ranks " + std::to_string(comm_.rank()) + " and " + std::to_string(status.MPI_SOURCE) +
                " execute one operation in different ways: block sizes, or the algorithm that was set, "
                "differ between ranks");
    }
}

void NeighborOperation::note(int mpi_class, const std::string& text) {
  if (!error_) error_ = std::make_unique<ArgumentError>(mpi_class, text);
}

void NeighborOperation::stop(int mpi_class, const std::string& text) noexcept {
  try {
    stopped_ = true;
    withdraw_receives();
    if (check_ && check_->failed()) {  // whatever else went wrong, it is the reason
      error_ = std::make_unique<ArgumentError>(ListCheck::error());
      parting_ = std::make_unique<Parting>(comm_, ticket_);
    } else {
      note(mpi_class, text);
      parting_ = std::make_unique<Parting>(comm_, ticket_, traffic_(), itinerary_->algorithm);
    }
    for (const auto& [peer, sent] : notices_) parting_->heard(peer, sent);
    for (const auto& [peer, tag] : taken_) parting_->got(peer, tag);
    parting_->tell(mpi_class, error_->what(), [this](int peer) { return sent_to(peer); });
    deactivate(this);
    activate(this);  // the others need this rank until all have parted
    part();
  } catch (...) {
    let_go();
  }
}

/// Withdraws the receives, so that nothing is written behind the caller's back. Notes what has been received.
void NeighborOperation::withdraw_receives() {
  taken_.clear();
  for (std::size_t k = 0; k < phase_ && k < phases_.size(); ++k)
    for (const Message& m : phases_[k].receive) taken_.emplace_back(m.peer, m.tag);
  for (std::size_t k = 0; k < (sized_ ? receiving_.size() : std::min(awaited_, receiving_.size())); ++k) {
    int withdrawn = 0;
    if (!sized_ && requests_[k] != MPI_REQUEST_NULL) {
      MPI_Status status;
      MPI_Cancel(&requests_[k]);
      MPI_Wait(&requests_[k], &status);
      MPI_Test_cancelled(&status, &withdrawn);
    }
    if (!withdrawn) taken_.emplace_back(receiving_[k]->peer, receiving_[k]->tag);
  }
  receiving_.clear();
}

int NeighborOperation::sent_to(int peer) const {
  int n = 0;
  for (std::size_t k = 0; k <= phase_ && k < phases_.size(); ++k) {
    const auto& send = phases_[k].send;
    for (std::size_t m = 0; m < (k < phase_ ? send.size() : posted_); ++m) n += send[m].peer == peer;
  }
  return n;
}

/// Ends when the others have parted and have taken what this rank has sent.
void NeighborOperation::part() noexcept {
  try {
    bool sent = true;
    for (MPI_Request& r : requests_) {
      int done = 0;
      mpi_check(MPI_Test(&r, &done, MPI_STATUS_IGNORE), "MPI_Test in an isomorphic collective", comm_.get());
      sent = sent && done;
    }
    if (!(parting_->poll() && sent) && !parting_->too_late()) return;
  } catch (...) {
  }
  let_go();
}

/// Sends that nobody takes are left to MPI, with the buffers of this operation, which is of no use any more.
void NeighborOperation::let_go() noexcept {
  bool all = true;
  for (MPI_Request& r : requests_) {
    if (r == MPI_REQUEST_NULL) continue;
    MPI_Request_free(&r);
    all = false;
  }
  if (!all) {
    for (auto& phase : phases_)
      for (auto* side : {&phase.send, &phase.receive})
        for (auto& m : *side) given_up().push_back(std::move(m.buffer));
    for (auto& slot : temporaries_) given_up().push_back(std::move(slot));
  }
  requests_.clear();
  receiving_.clear();
  parting_.reset();
  end();
}

void NeighborOperation::end() noexcept {
  check_.reset();
  active_ = false;
  deactivate(this);
}

void NeighborOperation::rethrow() {
  if (!error_) return;
  const ArgumentError e = *std::exchange(error_, nullptr);
  throw e;
}

}  // namespace isohalo::detail
