#include "framework/neighborhood/giving_up.hpp"

#include <algorithm>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

/// The ways to execute an operation: the direct algorithm has one with a message per block.
int way_of(Algorithm algorithm, bool per_block) {
  return static_cast<int>(algorithm) * 2 + per_block;
}

}  // namespace

void NeighborTraffic::add(Algorithm algorithm, const Route& route) {
  const auto know = [&](int peer) {
    const auto place = std::lower_bound(peers_.begin(), peers_.end(), peer);
    if (place == peers_.end() || *place != peer) peers_.insert(place, peer);
  };
  for (const auto& p : route.phases) {
    for (const auto& m : p.send)
      if (m.peer != route.rank) know(m.peer);
    for (const auto& m : p.receive) {
      if (m.peer == route.rank) continue;
      know(m.peer);
      expect({m.peer, NeighborTags::data(algorithm, false), way_of(algorithm, false), 1});
      if (algorithm == Algorithm::direct)
        expect({m.peer, NeighborTags::data(algorithm, true), way_of(algorithm, true),
                static_cast<int>(m.parts.size())});
    }
  }
}

void NeighborTraffic::expect(const Stream& more) {
  const auto same = [&](const Stream& s) { return s.peer == more.peer && s.tag == more.tag; };
  const auto known = std::find_if(arriving_.begin(), arriving_.end(), same);
  if (known == arriving_.end())
    arriving_.push_back(more);
  else
    known->messages += more.messages;
}

std::optional<Notice> find_stop(const Communicator& comm, const NeighborTicket& ticket) {
  return find_notice(comm, ticket.first_tag + NeighborTags::stop, ticket.serial);
}

Parting::Parting(const Communicator& comm, const NeighborTicket& ticket, const NeighborTraffic& traffic,
                 Algorithm algorithm)
    : comm_(comm), ticket_(ticket), algorithm_(algorithm) {
  comm_.keep();
  for (int rank : traffic.peers()) peers_.push_back({rank, 0, -1});
  for (const auto& s : traffic.arriving()) streams_.push_back({s, 0});
}

Parting::Parting(const Communicator& comm, const NeighborTicket& ticket)
    : comm_(comm), ticket_(ticket), from_anyone_(true) {
  comm_.keep();
}

Parting::~Parting() {
  if (taking_ == MPI_REQUEST_NULL || !mpi_is_active()) return;
  MPI_Wait(&taking_, MPI_STATUS_IGNORE);  // its sender has started it
}

void Parting::got(int rank, int tag) {
  for (Peer& p : peers_) p.got += p.rank == rank;
  for (Stream& s : streams_) s.got += s.peer == rank && s.tag == tag;
}

void Parting::heard(int rank, int sent) {
  for (Peer& p : peers_)
    if (p.rank == rank) p.announced = sent;
}

void Parting::tell(int mpi_class, const std::string& text, const std::function<int(int)>& sent) noexcept {
  const std::string said = text.starts_with("rank ") ? text : "rank " + std::to_string(comm_.rank()) + ": " + text;
  for (const Peer& p : peers_)
    send_notice(comm_, ticket_.first_tag + NeighborTags::stop, ticket_.serial, p.rank,
                {0, mpi_class, sent(p.rank), said});
}

/// It has said how much it has sent; or it has sent all that the operation asks of it, in one of the ways, and
/// knows of no trouble; or nothing is asked of it.
bool Parting::has_parted(const Peer& p) const {
  if (p.announced >= 0) return p.got >= p.announced;
  const auto asked = [&](const Stream& s) {
    return s.peer == p.rank && (algorithm_ == Algorithm::automatic || s.way == way_of(algorithm_, false));
  };
  if (std::none_of(streams_.begin(), streams_.end(), asked)) return true;
  for (const Stream& first : streams_) {
    if (first.peer != p.rank) continue;
    if (std::all_of(streams_.begin(), streams_.end(),
                    [&](const Stream& s) { return s.peer != p.rank || s.way != first.way || s.got >= s.messages; }))
      return true;
  }
  return false;
}

/// Starts to take one message in; false when none is there.
bool Parting::take_in(int peer, int tag) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Count bytes = 0;
  mpi_check(MPI_Improbe(peer, ticket_.first_tag + tag, comm_.get(), &found, &message, &status), "MPI_Improbe",
            comm_.get());
  if (!found) return false;
  mpi_check(MPI_Get_elements_c(&status, MPI_BYTE, &bytes), "MPI_Get_elements_c");
  bin_.resize(static_cast<std::size_t>(bytes) + 1);
  mpi_check(MPI_Imrecv_c(bin_.data(), bytes, MPI_BYTE, &message, &taking_), "MPI_Imrecv_c", comm_.get());
  got(status.MPI_SOURCE, tag);
  return true;
}

bool Parting::take_in() {
  for (int tag = NeighborTags::stop + 1; from_anyone_ && tag < NeighborTags::kCount; ++tag)
    if (take_in(MPI_ANY_SOURCE, tag)) return true;
  return std::any_of(streams_.begin(), streams_.end(), [&](const Stream& s) { return take_in(s.peer, s.tag); });
}

bool Parting::poll() {
  while (const auto notice = find_stop(comm_, ticket_)) heard(notice->peer, notice->sent);
  do {
    int done = 1;
    if (taking_ != MPI_REQUEST_NULL)
      mpi_check(MPI_Test(&taking_, &done, MPI_STATUS_IGNORE), "MPI_Test", comm_.get());
    if (!done) return false;
  } while (take_in());
  if (from_anyone_) return Clock::now() > begin_ + kMoment;
  return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& p) { return has_parted(p); });
}

bool Parting::met_anyone() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.got > 0 || p.announced >= 0; });
}

std::shared_ptr<Absence> Absence::begin(const Communicator& comm, TagLease tags, const NeighborTraffic& traffic,
                                        Algorithm algorithm, const ArgumentError& error) {
  std::shared_ptr<Absence> absence(new Absence(comm, std::move(tags), traffic, algorithm));
  absence->parting_.tell(error.mpi_class(), error.what(), [](int) { return 0; });
  absence->self_ = absence;
  activate(absence.get());
  return absence;
}

void Absence::advance() {
  if (parting_.too_late()) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(1);
  }
  try {
    over_ = parting_.poll();
  } catch (const std::exception&) {  // MPI fails, or there is no memory to take it in
    over_ = true;
  }
  if (!over_) return;
  deactivate(this);
  const std::shared_ptr<Absence> last = std::move(self_);  // may be the last owner: nothing after this line
}

}  // namespace isohalo::detail
