#pragma once
/// How an operation ends that cannot go on: the ranks that have to do with each other in it tell each other, and
/// take in what is under way, so that nobody waits for ever and MPI has let go of everybody's buffers.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/mpi/notice.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#include "framework/neighborhood/route.hpp"

namespace isohalo::detail {

/// The tags of one execution, the same on all ranks whatever their arguments are, so that an operation that is
/// wrong on some rank leaves the tags of all later ones in step.
struct NeighborTags {
  static constexpr int kCount = 5;
  static constexpr int stop = 0;  ///< "a rank has given up", with its error
  /// One message per peer and phase, of all phases, because MPI keeps the order of messages between two ranks; or,
  /// direct algorithm only, one per block, in list order.
  static int data(Algorithm algorithm, bool per_block) {
    if (algorithm == Algorithm::direct) return 1 + per_block;
    return algorithm == Algorithm::combining ? 3 : 4;
  }
};

/// What passes between this rank and others in one operation, under any algorithm.
class NeighborTraffic {
 public:
  /// Messages from `peer` under `tag`, when operations go the way `way`.
  struct Stream {
    int peer, tag, way, messages;
  };

  void add(Algorithm algorithm, const Route& route);
  /// That this rank sends to or receives from; sorted.
  const std::vector<int>& peers() const { return peers_; }
  const std::vector<Stream>& arriving() const { return arriving_; }

 private:
  void expect(const Stream& more);

  std::vector<int> peers_;
  std::vector<Stream> arriving_;
};

/// The tags of one operation, and its number among those of its communicator.
struct NeighborTicket {
  int first_tag = 0;
  std::uint64_t serial = 0;
  NeighborTicket() = default;
  explicit NeighborTicket(const TagLease& tags) : first_tag(tags.first()), serial(tags.serial()) {}
};

/// Takes the notice of a rank that has given up this operation, if there is one. Local.
std::optional<Notice> find_stop(const Communicator& comm, const NeighborTicket& ticket);

/// This rank's part in the end of one operation: tells its peers, then takes in what they have sent until each has
/// either sent all that the operation asks of it or has given up as well. That they come to the operation is a
/// matter of course; those that come much later are not waited for, see `kLateness`.
class Parting {
 public:
  /// `ticket`: of the operation; its tags are not used by others while this lives. `algorithm`: by which the others
  /// execute it if they are right, `automatic` when this rank cannot know.
  Parting(const Communicator& comm, const NeighborTicket& ticket, const NeighborTraffic& traffic,
          Algorithm algorithm);
  /// When all ranks know that the operation is void but not who sends to whom: takes in what comes in a moment.
  Parting(const Communicator& comm, const NeighborTicket& ticket);
  Parting(const Parting&) = delete;
  Parting& operator=(const Parting&) = delete;
  ~Parting();

  /// Before anything else: what this rank has received in the operation, and whose notices it has taken.
  void got(int peer, int tag);
  void heard(int peer, int sent);
  /// Tells the peers; `sent(peer)` is the number of messages sent to it. Local; never throws.
  void tell(int mpi_class, const std::string& text, const std::function<int(int)>& sent) noexcept;
  /// Takes in what is there; true when nothing more will come. Local.
  bool poll();
  bool too_late() const { return Clock::now() > begin_ + kLateness; }
  bool met_anyone() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// In which strays from anyone come.
  static constexpr std::chrono::milliseconds kMoment{100};

  struct Stream : NeighborTraffic::Stream {
    int got = 0;
  };
  struct Peer {
    int rank, got, announced;
  };

  bool has_parted(const Peer& peer) const;
  bool take_in();
  bool take_in(int peer, int tag);

  Communicator comm_;
  NeighborTicket ticket_;
  Algorithm algorithm_ = Algorithm::automatic;
  bool from_anyone_ = false;
  std::vector<Peer> peers_;
  std::vector<Stream> streams_;
  std::vector<std::byte> bin_;
  MPI_Request taking_ = MPI_REQUEST_NULL;
  Clock::time_point begin_ = Clock::now();
};

/// The parting of a rank that cannot take part in an operation at all. It goes on in the waits of this library for
/// as long as ranks may still send, and keeps the tags as long.
class Absence final : public Progressable {
 public:
  static std::shared_ptr<Absence> begin(const Communicator& comm, TagLease tags, const NeighborTraffic& traffic,
                                        Algorithm algorithm, const ArgumentError& error);
  void advance() override;
  /// All have parted, or it is time to leave the rest to later waits.
  bool settled() const { return over_ || parting_.too_late(); }
  /// Others have come to the operation, as far as this rank knows; or none has to do with it.
  bool met_anyone() const { return over_ || parting_.met_anyone(); }

 private:
  Absence(const Communicator& comm, TagLease tags, const NeighborTraffic& traffic, Algorithm algorithm)
      : tags_(std::move(tags)), parting_(comm, NeighborTicket(tags_), traffic, algorithm) {}

  TagLease tags_;
  Parting parting_;
  bool over_ = false;
  std::chrono::steady_clock::time_point next_{};  ///< when it is too late, to look again
  std::shared_ptr<Absence> self_;                 ///< while it lasts
};

}  // namespace isohalo::detail
